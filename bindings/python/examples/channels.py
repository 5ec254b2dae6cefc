# Prints the events of Pusher channels.
#     python channels.py KEY CHANNEL... [--cluster NAME | --server HOST:PORT] [--auth URL]
from __future__ import annotations

import argparse
import asyncio
import sys

import librealtime

parser = argparse.ArgumentParser()
parser.add_argument("key")
parser.add_argument("channels", nargs="+", metavar="CHANNEL")
parser.add_argument("--cluster")
parser.add_argument("--server", help="another server, without TLS")
parser.add_argument("--auth", metavar="URL", help="authorizes private and presence channels")
arguments = parser.parse_args()


def show_state(change: librealtime.PusherStateChange) -> None:
    print(f"{change.new} {change.error or ''}".rstrip(), file=sys.stderr)


async def main() -> None:
    options = {"auth_endpoint": arguments.auth, "on_state": show_state}
    if arguments.server is None:
        pusher = librealtime.Pusher(arguments.key, cluster=arguments.cluster, **options)
    else:
        host, _, port = arguments.server.rpartition(":")
        pusher = librealtime.Pusher(
            arguments.key, host=host, port=int(port), use_tls=False, **options
        )
    async with pusher:
        for name in arguments.channels:
            channel = await pusher.subscribe(name, wait=False)
            channel.bind(lambda event: print(event.channel, event.event, event.raw, flush=True))
            await channel.subscribed()
        await pusher.wait_closed()


try:
    asyncio.run(main())
except librealtime.RealtimeError as error:
    sys.exit(f"FAILED: {error}")
except KeyboardInterrupt:
    pass
