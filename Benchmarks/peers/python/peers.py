"""The Python libraries under test, each with the few calls that a mode needs."""

import asyncio
import importlib
import inspect
import ssl
import time
from collections.abc import AsyncIterator
from typing import Any

from meter import Meter, Task

MESSAGE_LIMIT = 1 << 26


class NotSupportedError(Exception):
    """The library has no API for this mode."""


class Peer:
    """Shared by the libraries: awaited connections that are iterated over."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.tls = ssl.create_default_context(cafile=task.ca_file) if task.ca_file else None

    async def connect(self, *, deflate: bool = False) -> Any:
        raise NotSupportedError

    async def send(self, connection: Any, data: bytes | str) -> None:
        await connection.send(data)

    async def receive(self, connection: Any) -> Any:
        return await connection.recv()

    def messages(self, connection: Any) -> AsyncIterator[Any]:
        return aiter(connection)

    async def close(self, connection: Any) -> None:
        await connection.close()

    async def receive_callback(self, meter: Meter, *, batch: bool) -> None:
        raise NotSupportedError

    async def receive_iter(self, meter: Meter, *, deflate: bool) -> None:
        total = self.task.count
        count = size = 0
        connection = await self.connect(deflate=deflate)
        meter.start()
        await self.send(connection, "go")
        async for message in self.messages(connection):
            count += 1
            size += len(message)
            if count == total:
                break
        meter.stop(count, size, message)

    async def send_all(self, meter: Meter) -> None:
        payload = self.task.payload
        connection = await self.connect()
        meter.start()
        for _ in range(self.task.count):
            await self.send(connection, payload)
        meter.sent(await self.receive(connection))

    async def echo(self, meter: Meter) -> None:
        payload, times = self.task.payload, []
        connection = await self.connect()
        meter.start()
        for _ in range(self.task.count):
            asked = time.perf_counter_ns()
            await self.send(connection, payload)
            answer = await self.receive(connection)
            times.append(time.perf_counter_ns() - asked)
            if answer != payload:
                raise AssertionError("the echo differs from what was sent")
        meter.stop(self.task.count, self.task.count * self.task.size)
        meter.round_trips(times)


class Named(Peer):
    """Any library with the API of the ``websockets`` package."""

    def __init__(self, task: Task, module: str, **options: object) -> None:
        super().__init__(task)
        self._connect = importlib.import_module(module).connect
        self._options = options

    async def connect(self, *, deflate: bool = False) -> Any:
        if self.tls:
            self._options["ssl"] = self.tls
        compression = "deflate" if deflate else None
        return await self._connect(
            self.task.url, compression=compression, max_size=MESSAGE_LIMIT, **self._options
        )


class Librealtime(Named):
    def __init__(self, task: Task) -> None:
        super().__init__(task, "librealtime")
        if task.ca_file:
            self.tls = None
            self._options["ca_file"] = task.ca_file

    async def receive_callback(self, meter: Meter, *, batch: bool) -> None:
        count, size, total = 0, 0, self.task.count
        done = asyncio.get_running_loop().create_future()

        def one(message: str | bytes) -> None:
            nonlocal count, size
            count += 1
            size += len(message)
            if count == total:
                meter.stop(count, size, message)
                done.set_result(None)

        def many(messages: list[str | bytes]) -> None:
            nonlocal count, size
            count += len(messages)
            for message in messages:
                size += len(message)
            if count == total:
                meter.stop(count, size, messages[-1])
                done.set_result(None)

        if batch and "on_messages" not in inspect.signature(self._connect.__init__).parameters:
            raise NotSupportedError
        handler = {"on_messages": many} if batch else {"on_message": one}
        connection = await self._connect(self.task.url, compression=None, **handler)
        meter.start()
        await connection.send("go")
        await done


class Aiohttp(Peer):
    _session: Any = None

    async def connect(self, *, deflate: bool = False) -> Any:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        return await self._session.ws_connect(
            self.task.url, compress=15 if deflate else 0, max_msg_size=0, ssl=self.tls or True
        )

    async def send(self, connection: Any, data: bytes | str) -> None:
        await (connection.send_str if isinstance(data, str) else connection.send_bytes)(data)

    async def receive(self, connection: Any) -> Any:
        return (await connection.receive()).data

    async def receive_iter(self, meter: Meter, *, deflate: bool) -> None:
        # Its iterator yields messages that contain the data.
        total = self.task.count
        count = size = 0
        connection = await self.connect(deflate=deflate)
        meter.start()
        await connection.send_str("go")
        async for message in connection:
            count += 1
            size += len(message.data)
            if count == total:
                break
        meter.stop(count, size, message.data)


class Picows(Peer):
    """Its callbacks; ``frame`` is only valid inside them, so the payload is copied."""

    async def connect(self, *, deflate: bool = False) -> Any:
        import picows

        if deflate:
            raise NotSupportedError
        listener = listener_class()()
        await picows.ws_connect(
            lambda: listener, self.task.url, ssl_context=self.tls, max_frame_size=MESSAGE_LIMIT
        )
        return listener

    async def receive_callback(self, meter: Meter, *, batch: bool) -> None:
        if batch:
            raise NotSupportedError
        count, size, total = 0, 0, self.task.count
        done = asyncio.get_running_loop().create_future()

        def one(message: str | bytes) -> None:
            nonlocal count, size
            count += 1
            size += len(message)
            if count == total:
                meter.stop(count, size, message)
                done.set_result(None)

        listener = await self.connect()
        listener.on_message = one
        meter.start()
        await self.send(listener, "go")
        await done

    async def receive_iter(self, meter: Meter, *, deflate: bool) -> None:
        raise NotSupportedError

    async def send(self, connection: Any, data: bytes | str) -> None:
        connection.send(data)
        if not connection.writable.is_set():
            await connection.writable.wait()

    async def receive(self, connection: Any) -> Any:
        return await connection.next_message()

    async def close(self, connection: Any) -> None:
        connection.transport.send_close()
        await connection.transport.wait_disconnected()


def listener_class() -> Any:
    """A function, because picows need not be installed."""
    import picows

    text, binary = picows.WSMsgType.TEXT, picows.WSMsgType.BINARY
    close = picows.WSMsgType.CLOSE

    class Listener(picows.WSListener):  # type: ignore[misc]
        on_message: Any = None

        def __init__(self) -> None:
            self.writable = asyncio.Event()
            self.writable.set()
            self.waiter: asyncio.Future[Any] | None = None
            self.early: list[Any] = []

        def on_ws_connected(self, transport: Any) -> None:
            self.transport = transport

        def on_ws_frame(self, transport: Any, frame: Any) -> None:
            kind = frame.msg_type
            if kind == text:
                message = frame.get_payload_as_utf8_text()
            elif kind == binary:
                message = frame.get_payload_as_bytes()
            else:
                if kind == close:
                    transport.send_close(frame.get_close_code(), frame.get_close_message())
                    transport.disconnect()
                return
            if self.on_message:
                self.on_message(message)
            elif self.waiter:
                self.waiter.set_result(message)
                self.waiter = None
            else:
                self.early.append(message)

        def send(self, data: bytes | str) -> None:
            if isinstance(data, str):
                self.transport.send(text, data.encode())
            else:
                self.transport.send(binary, data)

        def next_message(self) -> Any:
            future = asyncio.get_running_loop().create_future()
            if self.early:
                future.set_result(self.early.pop(0))
            else:
                self.waiter = future
            return future

        def pause_writing(self) -> None:
            self.writable.clear()

        def resume_writing(self) -> None:
            self.writable.set()

    return Listener


def peer_named(name: str, task: Task) -> Peer:
    if name == "librealtime":
        return Librealtime(task)
    if name == "picows":
        return Picows(task)
    if name == "aiohttp":
        return Aiohttp(task)
    # Otherwise it looks up proxies in the environment.
    return Named(task, name, proxy=None)
