# The smallest whole program: say hello, print the first answer, close.
import asyncio
import sys

import librealtime


async def main() -> None:
    async with librealtime.connect(sys.argv[1]) as ws:
        await ws.send("hello")
        print(await ws.recv())


asyncio.run(main())
