"""A WebSocket echo, an event stream and an echo of requests, by Tornado: PORT."""

import asyncio
import sys

from tornado.iostream import StreamClosedError
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketHandler


class Echo(WebSocketHandler):
    def get_compression_options(self) -> dict[str, object]:
        return {}

    async def on_message(self, message: str | bytes) -> None:
        await self.write_message(message, binary=isinstance(message, bytes))


class Events(RequestHandler):
    async def get(self) -> None:
        self.set_header("Content-Type", "text/event-stream")
        first = int(self.request.headers.get("Last-Event-ID", "0")) + 1
        try:
            for number in range(first, first + 3):
                self.write(f"id: {number}\ndata: event {number}\n\n")
                await self.flush()
            await asyncio.Event().wait()
        except StreamClosedError:
            pass


class Requests(RequestHandler):
    def get(self) -> None:
        self.write({"path": self.request.path, "name": self.get_argument("name", "")})

    def post(self) -> None:
        self.set_header("Content-Type", "application/octet-stream")
        self.write(self.request.body)


async def main() -> None:
    application = Application([("/ws", Echo), ("/events", Events), ("/rest", Requests)])
    application.listen(int(sys.argv[1]), "127.0.0.1")
    await asyncio.Event().wait()


asyncio.run(main())
