"""Opens COUNT event sources at once, on one loop: eager.py URL COUNT. Ends when all are open."""

from __future__ import annotations

import asyncio
import sys

import librealtime


async def main(url: str, count: int) -> None:
    opened = asyncio.Semaphore(0)
    sources = [
        # Without a handler for messages it would not read.
        librealtime.EventSource(url, on_open=opened.release, on_message=print, proxy=None)
        for _ in range(count)
    ]
    for _ in sources:
        await opened.acquire()
    for source in sources:
        source.close()


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
