"""Runs the server until its standard input is closed, so that it never outlives its test.

Prints one line: PORT TLS_PORT CA_FILE. Both ports are the same one. The app has the id 1, the key
`demo` and the secret `demo-secret`; `POST /control/new_app` makes further ones, so that tests can
run side by side.
"""

import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from certificates import TLS

from pusher_server import PusherServer
from pusher_server.settings import DIALECTS


def main() -> None:
    parser = argparse.ArgumentParser(description="A Pusher server for tests.")
    parser.add_argument("--dialect", choices=DIALECTS, default="pusher")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pusher-") as folder:
        tls = TLS(pathlib.Path(folder), "localhost", "127.0.0.1")
        with PusherServer(tls) as server:
            server.control.settings(dialect=arguments.dialect)
            print(server.port, server.port, tls.ca_file, flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main()
