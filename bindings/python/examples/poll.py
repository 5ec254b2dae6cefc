# Prints the messages of a server that answers requests when there is something new (long polling).
# With the last id, a second run continues where the first one stopped.
#     python poll.py URL [COUNT [ID]]
from __future__ import annotations

import asyncio
import sys

import librealtime


def complain(event: librealtime.ErrorEvent) -> None:
    # If there is no next attempt, the error is raised below.
    if event.retry_in is not None:
        print(f"{event.error}; again in {event.retry_in:.1f} s", file=sys.stderr)


async def main(url: str, count: int | None, last_id: str) -> None:
    async with librealtime.LongPoll(url, on_error=complain, last_event_id=last_id) as poll:
        async for message in poll:
            # Of a batch, only the last message has its own id.
            print(message.id if message.had_id else "-", message.text, flush=True)
            if count is not None:
                count -= 1
                if count == 0:
                    break


try:
    arguments = sys.argv[1:]
    limit = int(arguments[1]) if len(arguments) > 1 else None
    asyncio.run(main(arguments[0], limit, arguments[2] if len(arguments) > 2 else ""))
except librealtime.RealtimeError as error:
    sys.exit(f"FAILED: {error}")
