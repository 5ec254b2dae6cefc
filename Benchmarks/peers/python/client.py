"""One measurement of one Python library: ``client.py PEER MODE URL COUNT [SIZE] [CA-FILE]``.

Modes: receive (callback), receive-batch, receive-iter, deflate, send, echo, connect, idle, greet,
events (the peers of events.py), rest-N (N requests at a time, those of rest.py), pusher and
pusher-json (those of channels.py), ddp-load, ddp-changes and ddp-each (those of documents.py).
Every library runs on uvloop where that is installed, on asyncio's own loop otherwise.
"""

import asyncio
import sys

from channels import receive_events
from documents import receive_documents
from events import read_events
from meter import NOT_SUPPORTED, Meter, Task
from peers import NotSupportedError, Peer, peer_named
from rest import send_requests


async def connect_in_turn(peer: Peer, meter: Meter) -> None:
    meter.start()
    for _ in range(meter.task.count):
        await peer.close(await peer.connect())
    meter.stop(meter.task.count)


async def idle(peer: Peer, meter: Meter, *, greeted: bool) -> None:
    # The first connection does not count, because it includes the one-time setup.
    size, kept = 0, []
    for count in range(meter.task.count + 1):
        if count == 1:
            meter.idle_before()
        connection = await peer.connect(deflate=greeted)
        if greeted:
            length = len(await peer.receive(connection))
            size += length if count else 0
        kept.append(connection)
    meter.idle_after(size)


async def run(name: str, meter: Meter) -> None:
    if meter.task.mode == "events":
        await read_events(name, meter)
        meter.report()
    if meter.task.mode in ("pusher", "pusher-json"):
        await receive_events(name, meter)
        meter.report()
    if meter.task.mode.startswith("ddp-"):
        await receive_documents(name, meter)
        meter.report()
    if meter.task.mode.startswith("rest-"):
        await send_requests(name, meter, int(meter.task.mode.removeprefix("rest-")))
        meter.report()
    peer = peer_named(name, meter.task)
    match meter.task.mode:
        case "receive" | "receive-batch" as mode:
            await peer.receive_callback(meter, batch=mode == "receive-batch")
        case "receive-iter" | "deflate" as mode:
            await peer.receive_iter(meter, deflate=mode == "deflate")
        case "send":
            await peer.send_all(meter)
        case "echo":
            await peer.echo(meter)
        case "connect":
            await connect_in_turn(peer, meter)
        case "idle" | "greet" as mode:
            await idle(peer, meter, greeted=mode == "greet")
        case _:
            raise NotSupportedError
    meter.report()


def main() -> None:
    name, *arguments = sys.argv[1:]
    meter = Meter(Task.read(arguments))
    try:
        from uvloop import run as run_loop
    except ImportError:
        run_loop = asyncio.run
    try:
        run_loop(run(name, meter))
    except (NotSupportedError, ImportError) as error:
        print(f"not supported: {error}", file=sys.stderr)
        sys.exit(NOT_SUPPORTED)


if __name__ == "__main__":
    main()
