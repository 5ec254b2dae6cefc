# Prints the messages of a path, each once and in order, by WebSocket, server-sent events or long
# polls, whichever works, and reports the transport in use and each change of it. With the last id,
# a second run continues where the first one stopped. TOKEN in the environment is the access token,
# UPGRADE_MS the time before it tries the WebSocket again, if that is not 5 minutes.
#     python listen.py https://example.org news [COUNT [ID]]
from __future__ import annotations

import asyncio
import os
import sys

import librealtime


def tell(transport: str, resumed: bool) -> None:
    print(f"listen: by {transport}{', after the last id' if resumed else ''}", file=sys.stderr)


def complain(event: librealtime.SpreadbotError) -> None:
    again = f"; again in {event.retry_in:.1f} s" if event.retry_in else ""
    print(f"listen: {event.error}{again}", file=sys.stderr)


async def main(base_url: str, path: str, count: int | None, last_id: str) -> None:
    bot = librealtime.Spreadbot(
        base_url,
        access_token=os.environ.get("TOKEN", ""),
        last_event_id=last_id,
        upgrade_interval=int(os.environ.get("UPGRADE_MS", 300_000)) / 1000,
        on_open=tell,
        on_error=complain,
    )
    async with bot:
        await bot.establish_connection(path)
        async for message in bot:
            print(message.id if message.had_id else "-", message.text, flush=True)
            if count is not None:
                count -= 1
                if count == 0:
                    break


if len(sys.argv) < 3:
    sys.exit("usage: listen.py BASE_URL PATH [COUNT [ID]]")
try:
    base, where, *rest = sys.argv[1:]
    limit = int(rest[0]) if rest else None
    asyncio.run(main(base, where, limit, rest[1] if len(rest) > 1 else ""))
except librealtime.RealtimeError as error:
    sys.exit(f"FAILED: {error}")
