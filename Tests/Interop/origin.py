"""The proxies' origin server: a WebSocket echo, an event stream and an echo of requests: PORT."""

import asyncio
import sys

from aiohttp import WSMsgType, web


async def echo(request: web.Request) -> web.WebSocketResponse:
    response = web.WebSocketResponse(max_msg_size=0)
    await response.prepare(request)
    async for message in response:
        if message.type is WSMsgType.TEXT:
            await response.send_str(message.data)
        else:
            await response.send_bytes(message.data)
    return response


async def events(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    first = int(request.headers.get("Last-Event-ID", "0")) + 1
    for number in range(first, first + 3):
        await response.write(f"id: {number}\ndata: event {number}\n\n".encode())
    await asyncio.Event().wait()
    return response


async def requests(request: web.Request) -> web.Response:
    if request.method == "POST":
        return web.Response(body=await request.read(), content_type="application/octet-stream")
    return web.json_response({"path": request.path, "name": request.query.get("name", "")})


application = web.Application(client_max_size=2**24)
application.router.add_get("/ws", echo)
application.router.add_get("/events", events)
application.router.add_route("*", "/rest", requests)
web.run_app(
    application, host="127.0.0.1", port=int(sys.argv[1]), print=None, handler_cancellation=True
)
