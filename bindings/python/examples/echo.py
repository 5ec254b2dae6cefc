"""Sends its arguments to an echo server and prints what comes back.

python echo.py ws://127.0.0.1:8765/ hello world
"""

import asyncio
import sys

import librealtime


async def main(url: str, *messages: str) -> None:
    async with librealtime.connect(url) as ws:
        for message in messages:
            await ws.send(message)
            print(await ws.recv())
        print(f"round trip: {await (await ws.ping()) * 1000:.2f} ms")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))
