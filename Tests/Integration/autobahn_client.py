#!/usr/bin/env python3
"""The client for an Autobahn fuzzing server, with Python's callback face.

autobahn_client.py ws://127.0.0.1:9001 AGENT [no-context]

no-context offers client_no_context_takeover, which cases 13.2, 13.5 and 13.6 need.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
from urllib.parse import quote

import librealtime

# Some cases have megabytes in small fragments, and some wait for seconds. Those of deflate want
# every echo compressed, however small.
connect = functools.partial(
    librealtime.connect,
    max_size=None,
    ping_interval=None,
    open_timeout=120,
    close_timeout=120,
    write_limit=2**40,
)


async def run_case(url: str, compression: librealtime.Deflate) -> None:
    # Echo inside the callback: messages before a bad frame in the same read must be echoed, and
    # once the frame is parsed nothing can be sent any more.
    def echo(message: str | bytes) -> None:
        # In some cases the peer's last frames end the connection, so that no echo can be sent.
        with contextlib.suppress(librealtime.ConnectionClosed):
            ws.send_nowait(message)

    ws = await connect(url, on_message=echo, compression=compression)
    # Most cases break the protocol: the server judges them, not the client.
    await ws.wait_closed()


async def main(server: str, agent: str, no_context: bool) -> None:
    compression = librealtime.Deflate(min_size=0, client_no_context_takeover=no_context)
    async with connect(f"{server}/getCaseCount") as ws:
        count = int(await ws.recv())
    for case in range(1, count + 1):
        await run_case(f"{server}/runCase?case={case}&agent={quote(agent)}", compression)
    async with connect(f"{server}/updateReports?agent={quote(agent)}") as ws:
        await ws.wait_closed()


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], ["no-context"]):
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1], sys.argv[2], len(sys.argv) == 4))
