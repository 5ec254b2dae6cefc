"""Network namespaces for tests: a client's and a server's, joined by a cable that can be cut.

with Wire() as wire:
    wire.client("ip link set c0 down")
    program = [*wire.inside, "program"]      # runs in the client's namespace
    listener = wire.listen()                 # a socket in the server's namespace

The rest of the system is not changed. The namespaces end with this process, even if it is killed.
"""

import ctypes
import os
import socket
import subprocess
import threading
import time

CLIENT = "10.77.0.2"
SERVER = "10.77.0.1"
_CLONE_NEWNET = 0x40000000
# A guard against hanging.
PATIENCE_S = 60


class Namespace:
    """A namespace that exists as long as a process that waits for the end of its input."""

    def __init__(self) -> None:
        self._keeper = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo ready; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._keeper.stdout is not None and self._keeper.stderr is not None
        if not self._keeper.stdout.readline():
            raise PermissionError(self._keeper.stderr.read().strip())
        self.pid = self._keeper.pid
        self.path = f"/proc/{self.pid}/ns/net"

    def close(self) -> None:
        self._keeper.communicate("")

    def run(self, command: str) -> None:
        """Runs commands separated by semicolons."""
        for line in command.split(";"):
            subprocess.run(["nsenter", f"--net={self.path}", *line.split()], check=True)

    def wait_until_up(self, device: str) -> None:
        """The kernel reports that a cable is plugged in some time after both ends are up."""
        show = ["nsenter", f"--net={self.path}", "ip", "-o", "link", "show", device]
        end = time.monotonic() + PATIENCE_S
        while (
            " state UP "
            not in subprocess.run(show, check=True, capture_output=True, text=True).stdout
        ):
            if time.monotonic() > end:
                raise TimeoutError(f"{device} is not up")
            time.sleep(0.01)

    def socket(self) -> socket.socket:
        """A socket of this namespace, usable from every thread of the process."""
        made: list[socket.socket | OSError] = []

        def make() -> None:
            libc = ctypes.CDLL(None, use_errno=True)
            with open(self.path) as namespace:
                if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                    made.append(OSError(ctypes.get_errno(), "setns"))
                    return
            made.append(socket.socket())

        # setns() moves only the calling thread to the namespace, so it gets its own.
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        if isinstance(made[0], OSError):
            raise made[0]
        return made[0]


class Wire:
    """The two namespaces, with addresses and links up; the server is the client's default route."""

    def __enter__(self) -> "Wire":
        self._client = Namespace()
        self._server = Namespace()
        self.inside = ["nsenter", f"--net={self._client.path}"]
        self.client(
            "ip link set lo up;"
            f"ip link add c0 type veth peer name s0 netns {self._server.pid};"
            f"ip addr add {CLIENT}/24 dev c0; ip link set c0 up"
        )
        self.server(f"ip addr add {SERVER}/24 dev s0; ip link set s0 up")
        self.client(f"ip route add default via {SERVER}")
        self._client.wait_until_up("c0")
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._server.close()

    def client(self, command: str) -> None:
        self._client.run(command)

    def server(self, command: str) -> None:
        self._server.run(command)

    def listen(self, *, at_client: bool = False) -> socket.socket:
        """A listening socket of the server, or on the client's loopback."""
        made = (self._client if at_client else self._server).socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(("127.0.0.1" if at_client else SERVER, 0))
        return made


def refusal() -> str | None:
    """Why this machine cannot create namespaces; None if it can."""
    if os.geteuid() != 0:
        return "not root"
    try:
        with Wire():
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        return str(error)
