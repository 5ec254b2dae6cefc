"""Runs the server until its standard input is closed, so that it never outlives its test.

Prints one line: PORT TLS_PORT CA_FILE. Both ports are the same one. `POST /control/new_app` makes
further apps, so that tests can run side by side: all URLs of the app ID are below /apps/ID.
"""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from certificates import TLS

from ddp_server import DDPServer


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ddp-") as folder:
        tls = TLS(pathlib.Path(folder), "localhost", "127.0.0.1")
        with DDPServer(tls) as server:
            print(server.port, server.port, tls.ca_file, flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main()
