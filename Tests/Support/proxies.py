"""Real proxies for tests: tinyproxy (HTTP CONNECT) and microsocks (SOCKS5), on 127.0.0.1.

with Tinyproxy(folder, user="ann", password="secret") as proxy:
    proxy.url("ann", "secret")          # http://ann:secret@127.0.0.1:PORT
    proxy.log()                         # its log
"""

import pathlib
import socket
import subprocess
import tempfile
import time

#: A program that does not accept connections within this time has failed.
START_S = 60


class ProxyError(Exception):
    """A proxy could not be started."""


class Proxy:
    """The process of a proxy on its own port."""

    scheme = "http"

    def __init__(
        self, folder: pathlib.Path, user: str = "", password: str = "", refuses: bool = False
    ) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="proxy-", dir=folder))
        self.user = user
        self.password = password
        self.refuses = refuses
        self.port = 0
        self._log = self.folder / "log"

    def command(self) -> list[str]:
        raise NotImplementedError

    def __enter__(self) -> "Proxy":
        # Another program may take the free port before the proxy does: then try another port.
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            self.port = free_port()
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(self.command(), stdout=log, stderr=log)
            while self._process.poll() is None and time.monotonic() < deadline:
                with socket.socket() as attempt:
                    if attempt.connect_ex(("127.0.0.1", self.port)) == 0:
                        return self
                time.sleep(0.01)
        self._stop()
        raise ProxyError(f"{self.command()[0]} did not start: {self.log()}")

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def url(self, user: str = "", password: str = "", scheme: str = "") -> str:
        credentials = f"{user}:{password}@" if user else ""
        return f"{scheme or self.scheme}://{credentials}127.0.0.1:{self.port}"


class Tinyproxy(Proxy):
    """CONNECT, RFC 9110 §9.3.6; answers 403 when it refuses."""

    def command(self) -> list[str]:
        lines = [
            f"Port {self.port}",
            "Listen 127.0.0.1",
            "Allow 127.0.0.1",
            "Timeout 60",
            "MaxClients 20",
            "LogLevel Connect",
        ]
        if self.user:
            lines.append(f"BasicAuth {self.user} {self.password}")
        if self.refuses:
            lines.append("ConnectPort 1")
        configuration = self.folder / "tinyproxy.conf"
        configuration.write_text("\n".join(lines) + "\n")
        return ["tinyproxy", "-d", "-c", str(configuration)]


class Microsocks(Proxy):
    """SOCKS5, RFC 1928, with a user and password by RFC 1929."""

    scheme = "socks5h"

    def command(self) -> list[str]:
        command = ["microsocks", "-i", "127.0.0.1", "-p", str(self.port)]
        if self.user:
            command += ["-u", self.user, "-P", self.password]
        return command


def free_port() -> int:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        return int(holder.getsockname()[1])
