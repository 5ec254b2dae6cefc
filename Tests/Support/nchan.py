#!/usr/bin/env python3
"""Runs a real nginx with the Nchan module in a scratch folder, for integration tests and the demo.

    with Nchan(tls=True) as server:
        server.publish("news", "hello")
        server.url("/ps/news")                # ws://127.0.0.1:PORT/ps/news
        server.url("/ps/news", "wss")

As a program it runs until it is interrupted, or as long as the command given after `--`, which
finds the ports in NCHAN_PORT and NCHAN_TLS_PORT and the CA's file in NCHAN_CA.
"""

import argparse
import contextlib
import http.client
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

MODULE = pathlib.Path("/usr/lib/nginx/modules/ngx_nchan_module.so")
BROTLI = MODULE.with_name("ngx_http_brotli_filter_module.so")

# One worker: with two, Nchan 1.3.6 sometimes loses a poll and its message on the way from one
# worker to the other (on a loaded machine 2 times of 100; with one worker 0 of 90).
CONFIGURATION = r"""
load_module {module}; load_module {brotli};
worker_processes 1; pid nginx.pid; error_log error.log info; daemon off;
events {{ worker_connections 256; }}
http {{
  access_log off; log_format coding '$uri $sent_http_content_encoding';
  log_format held '$uri $request_method $server_protocol $connection';
  client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4;
  scgi_temp_path t5;
  nchan_message_buffer_length 1000; nchan_message_timeout 10m;
  server {{
    listen 127.0.0.1:{port};
    {tls}
    location ~ ^/ps/(\w+)$ {{ nchan_pubsub; nchan_channel_id $1;
      nchan_subscriber_first_message oldest;
      nchan_websocket_ping_interval 5; nchan_eventsource_ping_interval 5; }}
    location ~ ^/pub/(\w+)$ {{ nchan_publisher; nchan_channel_id $1; }}
    location ~ ^/ip/(\w+)$ {{ nchan_subscriber intervalpoll; nchan_channel_id $1;
      nchan_subscriber_first_message oldest; }}
    location ~ ^/lpm/(\w+)$ {{ nchan_subscriber longpoll; nchan_channel_id $1;
      nchan_subscriber_first_message oldest; nchan_longpoll_multipart_response on; }}
    location ~ ^/to/(\w+)$ {{ nchan_pubsub; nchan_channel_id $1; nchan_subscriber_timeout 2;
      nchan_subscriber_first_message oldest; }}
    location ~ ^/held/(\w+)$ {{ nchan_pubsub; nchan_channel_id $1;
      nchan_subscriber_first_message oldest; access_log held.log held; }}
    location ~ ^/small/(\w+)$ {{ nchan_pubsub; nchan_channel_id $1;
      nchan_message_buffer_length 3; }}
    location ~ ^/tok/(\w+)$ {{ if ($http_authorization != "Bearer good") {{ return 401; }}
      nchan_pubsub; nchan_channel_id $1; nchan_subscriber_first_message oldest; }}
    location ~ ^/gz/(\w+)$ {{ proxy_pass http://127.0.0.1:{port}/ps/$1; proxy_http_version 1.1;
      proxy_buffering off; proxy_set_header Accept-Encoding ""; gzip on;
      gzip_types text/event-stream; gzip_min_length 0; gzip_proxied any;
      access_log coding.log coding; }}
    location ~ ^/br/(\w+)$ {{ proxy_pass http://127.0.0.1:{port}/ps/$1; proxy_http_version 1.1;
      proxy_buffering off; proxy_set_header Accept-Encoding ""; brotli on;
      brotli_types text/event-stream; brotli_min_length 0; access_log coding.log coding; }}
    location ~ ^/beat/(\w+)$ {{ nchan_subscriber; nchan_channel_id $1;
      nchan_eventsource_ping_interval 1; }}
    location = /protocol {{ default_type text/event-stream;
      return 200 "data: $server_protocol\n\n"; }}
    location = /host {{ default_type text/event-stream;
      return 200 "data: $server_protocol $http_host\n\n"; }}
    location ~ ^/moved/(\w+)$ {{ return 307 /ps/$1; }}
    location = /busy {{ add_header Retry-After 2 always; return 503; }}
    location = /stop {{ return 204; }}
    location = /rest/who {{ default_type text/plain; return 200 "$connection"; }}
    location = /rest/protocol {{ default_type text/plain; return 200 "$server_protocol"; }}
    location = /rest/host {{ default_type text/plain;
      return 200 "$server_protocol $http_host"; }}
    location = /rest/moved {{ return 301 /rest/who; }}
    location = /rest/large {{ gzip on; gzip_min_length 0; gzip_types text/plain;
      access_log coding.log coding; default_type text/plain; return 200 "{large}"; }}
    location = /rest/brotli {{ brotli on; brotli_min_length 0; brotli_types text/plain;
      access_log coding.log coding; default_type text/plain; return 200 "{large}"; }}
  }}
}}
"""

TLS_CONFIGURATION = """listen 127.0.0.1:{port} ssl http2;
    ssl_certificate server.pem; ssl_certificate_key server.key;"""


class NchanError(Exception):
    """nginx could not be started, or a request to it failed."""


def free_port() -> int:
    """A port of 127.0.0.1 that is free, and that the kernel gives to nobody: it takes the ports of
    outgoing connections, and those of servers which ask for any, from 32768 upwards."""
    while True:
        port = random.randrange(10_000, 32_768)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Nchan:
    """A running nginx with Nchan; a context manager that removes all its files."""

    def __init__(self, tls: bool = False, start_timeout: float = 60) -> None:
        self.tls = tls
        self.port = 0
        self.tls_port = 0
        self._start_timeout = start_timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._resources = contextlib.ExitStack()
        self.folder = pathlib.Path()

    @property
    def ca_file(self) -> pathlib.Path:
        """The certificate authority of the TLS listener, PEM."""
        return self.folder / "ca.pem"

    def url(self, path: str, scheme: str = "ws") -> str:
        port = self.tls_port if scheme in ("wss", "https") else self.port
        host = "localhost" if scheme in ("wss", "https") else "127.0.0.1"
        return f"{scheme}://{host}:{port}{path}"

    def publish(self, channel: str, text: str, event: str | None = None) -> None:
        """Publishes one message; returns when Nchan has it.

        event: its type, for readers of an event stream.
        """
        headers = {} if event is None else {"X-EventSource-Event": event}
        self._ask("POST", f"/pub/{channel}", text.encode(), headers)

    def delete(self, channel: str) -> None:
        """Deletes a channel; Nchan reports to its subscribers that it is gone."""
        self._ask("DELETE", f"/pub/{channel}")

    def _ask(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        if answer.status not in (200, 201, 202):
            raise NchanError(f"{method} {path}: {answer.status} {text}")

    def workers(self) -> set[int]:
        """The worker processes, including those that are about to exit."""
        assert self._process is not None
        master = self._process.pid
        children = pathlib.Path(f"/proc/{master}/task/{master}/children").read_text()
        return {int(word) for word in children.split()}

    def reload(self) -> None:
        """Starts new workers: all channels are emptied, all subscribers dropped."""
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    def __enter__(self) -> "Nchan":
        for module in (MODULE, BROTLI):
            if not module.exists():
                raise NchanError(f"{module} is missing; Tests/Support/install installs it")
        with contextlib.ExitStack() as stack:
            self.folder = pathlib.Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="nchan-"))
            )
            # If started by root, nginx's workers run as another user and need access to the folder.
            self.folder.chmod(0o755)
            self._start()
            stack.callback(self._stop)
            self._wait_until_ready()
            self._resources = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def _start(self) -> None:
        self.port = free_port()
        tls = ""
        if self.tls:
            self.tls_port = free_port()
            self._make_certificates()
            tls = TLS_CONFIGURATION.format(port=self.tls_port)
        text = CONFIGURATION.format(
            module=MODULE,
            brotli=BROTLI,
            port=self.port,
            tls=tls,
            large="a line that repeats; " * 90,
        )
        (self.folder / "nginx.conf").write_text(text)
        command = ["nginx", "-p", f"{self.folder}/", "-c", "nginx.conf", "-e", "error.log"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def _make_certificates(self) -> None:
        import trustme

        authority = trustme.CA()
        certificate = authority.issue_cert("localhost", "127.0.0.1")
        authority.cert_pem.write_to_path(str(self.ca_file))
        certificate.private_key_pem.write_to_path(str(self.folder / "server.key"))
        for blob in certificate.cert_chain_pems:
            blob.write_to_path(str(self.folder / "server.pem"), append=True)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + self._start_timeout
        for port in filter(None, (self.port, self.tls_port)):
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError as error:
                    assert self._process is not None
                    gone = self._process.poll() is not None
                    if gone or time.monotonic() > deadline:
                        log = self.folder / "error.log"
                        said = log.read_text(errors="replace")[-2000:] if log.exists() else ""
                        raise NchanError(f"nginx does not listen: {error}\n{said}") from error
                    time.sleep(0.02)

    def _stop(self) -> None:
        if self._process is None:
            return
        # TERM is nginx's fast shutdown: the master takes its workers along.
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs nginx with Nchan until interrupted.")
    parser.add_argument("--tls", action="store_true", help="listen for TLS too")
    parser.add_argument("command", nargs="*", help="run this, then stop")
    arguments = parser.parse_args()
    try:
        with Nchan(tls=arguments.tls) as server:
            environment = {"NCHAN_PORT": str(server.port)}
            if arguments.tls:
                environment["NCHAN_TLS_PORT"] = str(server.tls_port)
                environment["NCHAN_CA"] = str(server.ca_file)
            if arguments.command:
                return subprocess.call(arguments.command, env={**os.environ, **environment})
            print(" ".join(f"{name}={value}" for name, value in environment.items()), flush=True)
            # SIGTERM ends it like Ctrl-C, so that nginx is stopped too.
            stops = {signal.SIGINT, signal.SIGTERM}
            signal.pthread_sigmask(signal.SIG_BLOCK, stops)
            signal.sigwait(stops)
            return 0
    except NchanError as error:
        print(f"nchan: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
