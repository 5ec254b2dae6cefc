"""A WebSocket echo, an event stream and an echo of requests, by Hypercorn (ASGI): PORT."""

import asyncio
import json
import sys
from typing import Any
from urllib.parse import parse_qs

from hypercorn.asyncio import serve
from hypercorn.config import Config


async def echo(receive: Any, send: Any) -> None:
    while True:
        event = await receive()
        if event["type"] == "websocket.connect":
            await send({"type": "websocket.accept"})
        elif event["type"] == "websocket.receive":
            content = {
                name: event[name] for name in ("text", "bytes") if event.get(name) is not None
            }
            await send({"type": "websocket.send", **content})
        else:
            return


async def events(scope: Any, receive: Any, send: Any) -> None:
    headers = dict(scope["headers"])
    kind = (b"content-type", b"text/event-stream")
    await send({"type": "http.response.start", "status": 200, "headers": [kind]})
    first = int(headers.get(b"last-event-id", b"0")) + 1
    for number in range(first, first + 3):
        body = f"id: {number}\ndata: event {number}\n\n".encode()
        await send({"type": "http.response.body", "body": body, "more_body": True})
    while (await receive())["type"] != "http.disconnect":
        pass


async def requests(scope: Any, receive: Any, send: Any) -> None:
    body = b""
    more = True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    kind = b"application/octet-stream"
    if scope["method"] == "GET":
        name = parse_qs(scope["query_string"].decode()).get("name", [""])[0]
        body, kind = json.dumps({"path": scope["path"], "name": name}).encode(), b"application/json"
    head = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await echo(receive, send)
    elif scope["type"] == "http" and scope["path"] == "/events":
        await events(scope, receive, send)
    elif scope["type"] == "http":
        await requests(scope, receive, send)
    else:
        while (event := await receive())["type"].startswith("lifespan."):
            await send({"type": event["type"] + ".complete"})


config = Config()
config.bind = [f"127.0.0.1:{int(sys.argv[1])}"]
asyncio.run(serve(application, config))
