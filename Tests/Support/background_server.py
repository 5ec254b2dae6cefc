"""An aiohttp server on a thread of its own, with TLS and plain connections on the same port."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from aiohttp import web
from certificates import TLS


class Actions:
    """The methods of a server's control. Each returns what `run` makes of its coroutine."""

    def __init__(self, control: Any, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._control, self._run = control, run

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._control, name)
        return lambda *arguments, **fields: self._run(method(*arguments, **fields))


class BackgroundServer:
    """A subclass says what is served."""

    #: Whether the handler of a request is cancelled when its client goes.
    cancels_handlers = False

    def __init__(self, tls: TLS | None = None, host: str = "127.0.0.1", port: int = 0) -> None:
        self.host, self.tls = host, tls
        #: The one that it listens on, after it has started.
        self.port = port
        self._beginning: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def open(self) -> tuple[web.Application, object]:
        """Returns what is served, and the object whose methods are the actions of tests."""
        raise NotImplementedError

    def crash(self) -> None:
        """Resets all connections."""

    def __enter__(self) -> Any:
        self._thread.start()
        self.run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def http(self) -> str:
        """The origin of its URLs."""
        return f"http://{self.host}:{self.port}"

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Runs a coroutine on the server's thread."""
        return self._submit(coroutine).result()

    def _submit(self, coroutine: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    async def _start(self) -> None:
        application, control = self.open()
        #: The actions, and the same for coroutines of other event loops.
        self.control = Actions(control, self.run)
        self.actions = Actions(control, lambda one: asyncio.wrap_future(self._submit(one)))
        self._runner = web.AppRunner(
            application,
            access_log=None,
            shutdown_timeout=0.1,
            handler_cancellation=self.cancels_handlers,
        )
        await self._runner.setup()
        self._listener = socket.create_server((self.host, self.port), backlog=1000)
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])
        self._accepting = asyncio.create_task(self._accept())

    async def _accept(self) -> None:
        while True:
            client, _ = await self._loop.sock_accept(self._listener)
            task = asyncio.create_task(self._begin(client))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)

    async def _begin(self, client: socket.socket) -> None:
        """Starts TLS if the first byte is that of a TLS handshake (RFC 8446 §5.1)."""
        readable = self._loop.create_future()

        def see() -> None:
            if not readable.done():
                readable.set_result(None)

        self._loop.add_reader(client, see)
        try:
            await readable
        finally:
            self._loop.remove_reader(client)
            if not readable.done() or readable.cancelled():
                client.close()
        with contextlib.suppress(OSError):
            is_tls = client.recv(1, socket.MSG_PEEK) == b"\x16"
            context = self.tls.context if self.tls and is_tls else None
            assert self._runner.server is not None
            await self._loop.connect_accepted_socket(self._runner.server, client, ssl=context)

    async def _stop(self) -> None:
        for task in (self._accepting, *self._beginning):
            task.cancel()
        self._listener.close()
        self.crash()
        await self._runner.cleanup()


def reset(transport: asyncio.Transport) -> None:
    """Sends RST instead of FIN."""
    if not transport.is_closing():
        linger = struct.pack("ii", 1, 0)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport.abort()


async def perform(control: object, request: web.Request) -> web.Response:
    """Answers `POST …/control/ACTION`, whose body is the action's parameters."""
    action = request.match_info["action"]
    arguments = await request.json() if request.can_read_body else {}
    method = getattr(control, action, None)
    if method is None or action.startswith("_"):
        raise web.HTTPNotFound(text=f"no such action: {action}\n")
    try:
        return web.json_response(await method(**arguments))
    except (TypeError, ValueError) as error:
        raise web.HTTPBadRequest(text=f"{error}\n") from None
    except TimeoutError as error:
        raise web.HTTPGatewayTimeout(text=f"{error}\n") from None
