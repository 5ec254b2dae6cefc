"""Other projects' servers and proxies for `make check-interop`, each a process on 127.0.0.1."""

import os
import pathlib
import sys
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests" / "Support"))

from proxies import Proxy, free_port  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
#: The programs that Tests/Interop/install has unpacked.
UNPACKED = ROOT / "build" / "interop" / "root"
PYTHON = ROOT / "build" / "interop" / "venv" / "bin" / "python"


def program(name: str) -> list[str]:
    """The command for an unpacked program, with the path of its libraries."""
    for folder in ("usr/sbin", "usr/bin"):
        if (path := UNPACKED / folder / name).exists():
            libraries = [
                UNPACKED / f / f"{os.uname().machine}-linux-gnu" for f in ("usr/lib", "lib")
            ]
            return ["env", "LD_LIBRARY_PATH=" + ":".join(map(str, libraries)), str(path)]
    return [name]


class Peer(Proxy):
    """A process that opens its port, and ends with the test."""

    def __init__(self, folder: pathlib.Path, origin: int = 0) -> None:
        super().__init__(folder)
        self.origin = origin

    #: Whether Tests/Interop/install could download it.
    is_there: Callable[[], bool]

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)


class Origin(Peer):
    def command(self) -> list[str]:
        return [sys.executable, str(HERE / "origin.py"), str(self.port)]


class NodeWS(Peer):
    @staticmethod
    def is_there() -> bool:
        return (UNPACKED / "usr/share/nodejs/ws").exists()

    def command(self) -> list[str]:
        modules = f"NODE_PATH={UNPACKED / 'usr/share/nodejs'}"
        return ["env", modules, *program("node"), str(HERE / "node_ws.js"), str(self.port)]


class Tornado(Peer):
    @staticmethod
    def is_there() -> bool:
        return PYTHON.exists()

    def command(self) -> list[str]:
        return [str(PYTHON), str(HERE / "tornado_server.py"), str(self.port)]


class Hypercorn(Tornado):
    def command(self) -> list[str]:
        return [str(PYTHON), str(HERE / "hypercorn_server.py"), str(self.port)]


class Mosquitto(Peer):
    """MQTT over WebSocket. This version ends itself unless it also listens for plain MQTT."""

    @staticmethod
    def is_there() -> bool:
        return (UNPACKED / "usr/sbin/mosquitto").exists()

    def command(self) -> list[str]:
        lines = [
            f"listener {self.port} 127.0.0.1",
            "protocol websockets",
            f"listener {free_port()} 127.0.0.1",
            "protocol mqtt",
            "allow_anonymous true",
            "persistence false",
        ]
        return [*program("mosquitto"), "-c", self.file("conf", "\n".join(lines) + "\n")]


class Haproxy(Peer):
    """A reverse proxy."""

    @staticmethod
    def is_there() -> bool:
        return (UNPACKED / "usr/sbin/haproxy").exists()

    def command(self) -> list[str]:
        lines = [
            "defaults",
            "  mode http",
            "  timeout connect 10s",
            "  timeout client 60s",
            "  timeout server 60s",
            "  timeout tunnel 60s",
            "frontend front",
            f"  bind 127.0.0.1:{self.port}",
            "  default_backend back",
            "backend back",
            f"  server origin 127.0.0.1:{self.origin}",
        ]
        return [*program("haproxy"), "-db", "-f", self.file("conf", "\n".join(lines) + "\n")]


class Caddy(Peer):
    """A reverse proxy; it does not compress."""

    @staticmethod
    def is_there() -> bool:
        return (UNPACKED / "usr/bin/caddy").exists()

    def command(self) -> list[str]:
        lines = [
            "{",
            "  admin off",
            "  auto_https off",
            f"  storage file_system {self.folder}",
            "}",
            f"http://127.0.0.1:{self.port} {{",
            "  bind 127.0.0.1",
            f"  reverse_proxy 127.0.0.1:{self.origin}",
            "}",
        ]
        path = self.file("Caddyfile", "\n".join(lines) + "\n")
        home = f"HOME={self.folder}"
        return ["env", home, *program("caddy"), "run", "--adapter", "caddyfile", "--config", path]


class Squid(Peer):
    """A forward proxy: CONNECT for WebSockets, forwarding for all other requests."""

    @staticmethod
    def is_there() -> bool:
        return (UNPACKED / "usr/sbin/squid").exists()

    def command(self) -> list[str]:
        share = UNPACKED / "usr/share/squid"
        lines = [
            f"http_port 127.0.0.1:{self.port}",
            "http_access allow localhost",
            "http_access deny all",
            "cache deny all",
            "cache_mem 1 MB",
            "access_log none",
            "cache_log stdio:/dev/stderr",
            "pid_filename none",
            "netdb_filename none",
            "shutdown_lifetime 1 seconds",
            "pinger_enable off",
            f"mime_table {share / 'mime.conf'}",
            f"icon_directory {share / 'icons'}",
            f"error_directory {share / 'errors/templates'}",
            f"unlinkd_program {UNPACKED / 'usr/lib/squid/unlinkd'}",
            f"coredump_dir {self.folder}",
        ]
        # If started by root, it runs as another user, who must be able to read these.
        self.folder.chmod(0o755)
        conf = self.file("conf", "\n".join(lines) + "\n")
        return [*program("squid"), "-N", "-f", conf]
