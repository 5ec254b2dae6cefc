"""The client in Python: like victim.c, with the asyncio faces.

victim.py TRANSPORT URL SECONDS [NAME=VALUE...]

Its "dispatch" is the delay of a heartbeat on the asyncio loop, so callbacks and all other work of
the binding in the loop count, too. As in victim.c, the time in which this thread waited for a
processor does not count.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import sys
import time

import librealtime
from own_clock import own_clock

HEARTBEAT_S = 0.01
MAX_OUTCOMES = 24
#: A guard against hanging.
PATIENCE_S = 60


class Victim:
    def __init__(self, url: str, seconds: float, options: dict[str, str]) -> None:
        self.url = url
        self.seconds = seconds
        self.options = options
        self.timeout = int(options.get("timeout", "1000")) / 1000
        self.open_timeout = int(options.get("open_timeout", options.get("timeout", "1000"))) / 1000
        self.network = librealtime.Network(
            ca_file=options.get("ca"), proxy=options.get("proxy", True)
        )
        self.outcomes: list[dict[str, object]] = []
        self.outcome_count = self.opens = self.messages = self.bytes = 0
        self.unfinished = 1
        self.first_outcome = self.cpu_at_first_outcome = 0.0
        self.heartbeats = 0
        self.longest = self.longest_wall = 0.0
        self.began = time.monotonic()
        self.cpu_began = cpu_s()

    @property
    def is_waiting(self) -> bool:
        """Whether something is still expected, see victim.c."""
        return (
            self.outcome_count < int(self.options.get("outcomes", "0"))
            or self.messages < int(self.options.get("messages", "0"))
            or ("ends" in self.options and self.unfinished > 0)
        )

    def report(self, kind: str, status: str, http: int, is_final: bool, text: str) -> None:
        if not self.outcomes:
            self.first_outcome, self.cpu_at_first_outcome = time.monotonic(), cpu_s()
        self.outcome_count += 1
        self.unfinished -= is_final
        outcome = {"kind": kind, "status": status, "http": http, "final": is_final, "text": text}
        outcome["at_ms"] = (time.monotonic() - self.began) * 1000
        outcome["cpu_ms"] = (cpu_s() - self.cpu_began) * 1000
        self.outcomes[MAX_OUTCOMES - 1 :] = []
        self.outcomes.append(outcome)

    def raised(self, error: BaseException) -> None:
        name = error.name if isinstance(error, librealtime.RealtimeError) else type(error).__name__
        self.report("error", name, 0, True, str(error))

    def failed(self, event: librealtime.ErrorEvent) -> None:
        """For event sources and polls; a fatal failure is also raised."""
        if not event.fatal:
            self.report("error", event.error.name, event.http_status, False, str(event.error))

    def opened(self) -> None:
        self.opens += 1

    def took(self, size: int) -> None:
        self.messages += 1
        self.bytes += size

    async def heartbeat(self) -> None:
        with own_clock() as now:
            last = now()
            while True:
                await asyncio.sleep(HEARTBEAT_S)
                instant = now()
                self.heartbeats += 1
                late, late_wall = (b - a - HEARTBEAT_S for a, b in zip(last, instant, strict=True))
                self.longest = max(self.longest, late)
                self.longest_wall = max(self.longest_wall, late_wall)
                last = instant

    # One for each transport.

    async def websocket(self) -> None:
        connecting = librealtime.connect(
            self.url,
            network=self.network,
            open_timeout=self.open_timeout,
            close_timeout=self.timeout,
        )
        async with connecting as websocket:
            self.opened()
            async for message in websocket:
                self.took(len(message))
        self.report("close", "RT_OK", 0, True, "")

    async def events(self) -> None:
        source = librealtime.EventSource(
            self.url,
            network=self.network,
            connect_timeout=self.timeout,
            response_timeout=self.timeout,
            on_open=self.opened,
            on_error=self.failed,
        )
        async with source:
            async for event in source:
                self.took(len(event.data))

    async def poll(self) -> None:
        poll = librealtime.LongPoll(
            self.url,
            network=self.network,
            connect_timeout=self.timeout,
            poll_timeout=self.timeout,
            on_open=self.opened,
            on_error=self.failed,
        )
        async with poll:
            async for message in poll:
                self.took(len(message.data))

    async def rest(self) -> None:
        attempts = int(self.options.get("attempts", "1"))
        async with librealtime.RESTClient(
            self.url, network=self.network, timeout=self.timeout, attempts=attempts
        ) as client:
            method = self.options.get("method", "GET")
            response = await client.request(method, "1", content=self.options.get("body"))
            response.raise_for_status()
            self.took(len(response.content))
            self.report("done", "RT_OK", response.status_code, True, str(response.content[:80]))

    async def spreadbot(self) -> None:
        async with librealtime.Spreadbot(
            self.url, access_token="access", network=self.network, connect_timeout=self.timeout
        ) as bot:
            await bot.establish_connection("news")
            self.opened()
            async for message in bot:
                self.took(len(message.data))

    async def ddp(self) -> None:
        over = asyncio.Event()

        def changed(change: librealtime.DDPStatusChange) -> None:
            is_final = change.status == "failed"
            self.opens += change.status == "connected"
            if change.error is not None:
                name = change.error.name
                self.report("status", name, 0, is_final, str(change.error))
            elif is_final:
                self.report("status", "RT_OK", 0, True, change.reason)
            if is_final:
                over.set()

        def took(change: librealtime.DDPChange) -> None:
            self.took(len(change.fields))
            if change.collection == "last":
                self.report("last", "RT_OK", 0, False, "")

        def ended(collection: str, error: librealtime.RealtimeError) -> None:
            self.report("query", error.name, 0, False, str(error))

        plain = {"interval": "buffer_interval"}
        given = {ours: self.options[name] for name, ours in plain.items() if name in self.options}
        client = librealtime.DDPClient(
            self.url,
            network=self.network,
            connect_timeout=self.timeout,
            sockjs_fallback=self.options.get("sockjs") == "1",
            max_document_bytes=int(self.options.get("documents", 1 << 30)),
            on_status=changed,
            on_change=took,
            on_query_end=ended,
            **{name: int(value) / 1000 for name, value in given.items()},
        )
        with contextlib.closing(client):
            documents = client.collection("c")
            selector = json.loads(self.options.get("find", "{}"))
            sort = json.loads(self.options.get("with", "{}"))
            if "find" in self.options or "with" in self.options:
                documents.observe(took, selector, **sort)
            if "indexes" in self.options:
                documents.observe_indexes(lambda changes: None, **sort)
            await client.subscribe("attack", wait=False)
            client.send("attack")
            await client.connect(wait=False)
            await over.wait()

    async def attack(self, transport: str) -> None:
        try:
            await getattr(self, transport)()
        except (librealtime.RealtimeError, OSError) as error:
            self.raised(error)


def cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def memory_kib(name: str) -> int:
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name))


async def main(transport: str, victim: Victim) -> dict[str, object]:
    heart = asyncio.create_task(victim.heartbeat())
    await asyncio.sleep(2 * HEARTBEAT_S)
    started_kib, victim.began, cpu = memory_kib("VmRSS:"), time.monotonic(), cpu_s()
    victim.cpu_began = cpu
    attacked = asyncio.create_task(victim.attack(transport))
    settle, until = int(victim.options.get("settle", "0")) / 1000, victim.began + victim.seconds
    given_up = victim.began + PATIENCE_S
    while time.monotonic() < (given_up if victim.is_waiting else until):
        await asyncio.wait([attacked], timeout=0.05)
        if victim.outcomes and (settle or attacked.done()):
            until = min(until, victim.first_outcome + (settle or 0.4))
            await asyncio.sleep(0.05)
        elif attacked.done():
            break
    ended = time.monotonic()
    total, since = cpu_s() - cpu, victim.first_outcome if victim.outcomes else victim.began
    after = cpu_s() - (victim.cpu_at_first_outcome if victim.outcomes else cpu)
    unfinished = victim.unfinished
    attacked.cancel()
    heart.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(attacked, heart)
    return {
        "grown_kib": memory_kib("VmHWM:") - started_kib,
        "dispatch_ms": round(victim.longest * 1000, 1),
        "dispatch_wall_ms": round(victim.longest_wall * 1000, 1),
        "timer_gap_ms": round(victim.longest * 1000, 1),
        "timer_fired": victim.heartbeats,
        "cpu_percent": round(total / (ended - victim.began) * 100, 1),
        "cpu_percent_after": round(after / (ended - since) * 100, 1),
        "after_ms": round((ended - since) * 1000),
        "opens": victim.opens,
        "messages": victim.messages,
        "bytes": victim.bytes,
        "unfinished": unfinished,
        "lasted_ms": round((ended - victim.began) * 1000),
        "outcome_count": victim.outcome_count,
        "outcomes": victim.outcomes,
    }


if __name__ == "__main__":
    given = dict(text.split("=", 1) for text in sys.argv[4:])
    print(
        json.dumps(asyncio.run(main(sys.argv[1], Victim(sys.argv[2], float(sys.argv[3]), given))))
    )
