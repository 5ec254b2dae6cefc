# Reads an event stream and reconnects when it is lost.
#     python events.py URL [COUNT]
from __future__ import annotations

import asyncio
import sys

import librealtime


def complain(event: librealtime.ErrorEvent) -> None:
    again = "" if event.retry_in is None else f"; again in {event.retry_in:.1f} s"
    print(f"{event.error}{again}", file=sys.stderr)


async def main(url: str, count: int | None) -> None:
    source = librealtime.EventSource(
        url, on_error=complain, retry_statuses=librealtime.RESILIENT, idle_timeout=60
    )
    async with source:
        source.add_event_listener("odd", lambda event: print("odd:", event.data))
        async for event in source:
            print(event.id, event.event, event.data, flush=True)
            if count is not None:
                count -= 1
                if count == 0:
                    break


try:
    asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None))
except librealtime.RealtimeError as error:
    sys.exit(f"FAILED: {error}")
