"""Subscribes to a channel of Nchan, or to any server that sends by itself.

python subscribe.py ws://127.0.0.1:8080/ps/news          prints messages until interrupted
python subscribe.py ws://127.0.0.1:8080/ps/news COUNT    receives COUNT messages, the decimal
    numbers from 0 to COUNT - 1; exits with 0 if all came once and in order, else with 1
A URL that begins with http is read as Server-Sent Events, with --poll by long polling.
Options: --ca-file FILE for TLS, --timeout SECONDS between two messages (default 30).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator

import librealtime


async def messages(url: str, poll: bool, ca_file: str | None) -> AsyncGenerator[str | bytes, None]:
    network = librealtime.Network(ca_file=ca_file) if ca_file else None
    if not url.startswith("http"):
        async with librealtime.connect(url, network=network) as ws:
            async for message in ws:
                yield message
    elif poll:
        async with librealtime.LongPoll(url, network=network) as answers:
            async for answer in answers:
                yield answer.text
    else:
        async with librealtime.EventSource(url, network=network) as events:
            async for event in events:
                yield event.data


async def check_sequence(
    source: AsyncGenerator[str | bytes, None], count: int, timeout: float
) -> str | None:
    """The error in the sequence, or None; prints the messages, twenty numbers a line."""
    for expected in range(count):
        try:
            message = await asyncio.wait_for(source.__anext__(), timeout)
        except asyncio.TimeoutError:
            return f"message {expected} of {count} did not come within {timeout:g} s"
        except StopAsyncIteration:
            return f"closed before message {expected} of {count}"
        except librealtime.ConnectionClosed as error:
            return f"closed before message {expected} of {count}: {error}"
        if message != str(expected):
            return f"message {expected} of {count} is {message!r:.80}"
        ends_line = expected % 20 == 19 or expected == count - 1
        print(message, end="\n" if ends_line else " ", flush=True)
    return None


async def main(url: str, count: int | None, poll: bool, ca_file: str | None, timeout: float) -> int:
    source = messages(url, poll, ca_file)
    if count is None:
        async for message in source:
            print(message, flush=True)
        return 0
    problem = await check_sequence(source, count, timeout)
    await source.aclose()
    if problem:
        print(f"\nFAILED: {problem}")
        return 1
    print(f"ok: {count} of {count} messages, in order, each once")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("count", type=int, nargs="?")
    parser.add_argument("--poll", action="store_true")
    parser.add_argument("--ca-file")
    parser.add_argument("--timeout", type=float, default=30)
    arguments = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(**vars(arguments))))
    except librealtime.RealtimeError as error:
        print(f"FAILED: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
