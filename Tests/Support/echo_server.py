"""A `websockets` server for tests in other languages; the path selects what it does.

Prints one line, `PORT TLS_PORT CA_FILE`, and ends when its standard input is closed, so that it
never outlives the test that started it.

  /echo            sends every message back
  /sink            discards every message
  /count/N         sends the texts 0..N-1, then closes with 1000
  /close/CODE/WHY  closes with that code and reason
  /abort           drops the connection without a close frame
  /guarded/STATUS  like /echo with "Authorization: Bearer good"; otherwise refuses with STATUS
  /refuse          answers the handshake with 403 and a text
  /hang            opens and never answers, not even pings
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import tempfile
from collections.abc import Sequence
from http import HTTPStatus

import trustme
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol


def refuse(connection: ServerConnection, request: Request) -> Response | None:
    if request.path == "/refuse":
        return connection.respond(HTTPStatus.FORBIDDEN, "go away\n")
    _, action, *rest = request.path.split("/")
    if action == "guarded" and request.headers.get("Authorization") != "Bearer good":
        return connection.respond(HTTPStatus(int(rest[0])), "a token is needed\n")
    return None


async def handle(ws: ServerConnection) -> None:
    assert ws.request is not None
    parts = ws.request.path.strip("/").split("/")
    match parts[0]:
        case "echo" | "guarded":
            async for message in ws:
                await ws.send(message)
        case "sink":
            async for _ in ws:
                pass
        case "count":
            for number in range(int(parts[1])):
                await ws.send(str(number))
        case "close":
            await ws.close(int(parts[1]), parts[2] if len(parts) > 2 else "")
        case "abort":
            ws.transport.abort()
        case "hang":
            ws.transport.pause_reading()
            await asyncio.sleep(3600)


def choose(_: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """`chat` if it is offered; a client without it is accepted, too."""
    return Subprotocol("chat") if "chat" in offered else None


def start(context: ssl.SSLContext | None) -> serve:
    return serve(
        handle,
        "127.0.0.1",
        0,
        ssl=context,
        select_subprotocol=choose,
        process_request=refuse,
        max_size=None,
        ping_interval=None,
    )


async def main() -> None:
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    with tempfile.TemporaryDirectory() as folder:
        ca_file = os.path.join(folder, "ca.pem")
        ca.cert_pem.write_to_path(ca_file)
        async with start(None) as plain, start(context) as secure:
            ports = [next(iter(s.sockets)).getsockname()[1] for s in (plain, secure)]
            print(*ports, ca_file, flush=True)
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, sys.stdin.read)
            # Exit at once: leaving the blocks would wait for connections that hang on purpose.
            os.unlink(ca_file)
            os.rmdir(folder)
            os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
