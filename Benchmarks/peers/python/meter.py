"""Shared by the Python clients: the task, the counters, and the report."""

import json
import os
import resource
import sys
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

NOT_SUPPORTED = 3


@dataclass(frozen=True)
class Task:
    """``client.py PEER MODE URL COUNT [SIZE] [CA-FILE]``"""

    mode: str
    url: str
    count: int
    size: int = 0
    ca_file: str | None = None

    @staticmethod
    def read(arguments: list[str]) -> "Task":
        mode, url, count, *rest = arguments
        urlsplit(url)
        return Task(
            mode, url, int(count), int(rest[0]) if rest else 0, rest[1] if len(rest) > 1 else None
        )

    @property
    def payload(self) -> bytes:
        """The payload that clients send: bytes that the server knows."""
        return bytes((i * 7 + 3) & 255 for i in range(256)) * (self.size // 256) + bytes(
            (i * 7 + 3) & 255 for i in range(self.size % 256)
        )


class Meter:
    """Measures the time between ``start`` and ``stop``."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.fields: dict[str, float] = {}

    def start(self) -> None:
        self._wall = time.perf_counter_ns()
        self._cpu = resource.getrusage(resource.RUSAGE_SELF)

    def stop(self, messages: int, size: int = 0, last: "str | bytes" = b"") -> None:
        """``size`` counts characters of text; ``last`` shows how many bytes those are."""
        end = resource.getrusage(resource.RUSAGE_SELF)
        cpu = end.ru_utime - self._cpu.ru_utime + end.ru_stime - self._cpu.ru_stime
        if isinstance(last, str):
            # All messages of a flood have the same non-ASCII characters.
            size += messages * (len(last.encode()) - len(last))
        self.fields |= {
            "messages": messages,
            "bytes": size,
            "cpu_ns": round(cpu * 1e9),
            "wall_ns": time.perf_counter_ns() - self._wall,
            "peak_rss_kib": _peak_kib(),
        }

    def sent(self, verdict: object) -> None:
        """Takes the server's report about the messages that were sent: ``MESSAGES BYTES WRONG``."""
        messages, size, wrong = map(int, str(verdict).split())
        if wrong:
            sys.exit("the server received other bytes than were sent")
        self.stop(messages, size)

    def round_trips(self, times: list[int]) -> None:
        times.sort()
        self.fields["p50_ns"] = times[len(times) // 2]
        self.fields["p99_ns"] = times[len(times) * 99 // 100]

    def idle_before(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self._resident = _resident()
        self.start()

    def idle_after(self, size: int = 0) -> None:
        self.stop(self.task.count, size)
        self.fields["idle_bytes"] = (_resident() - self._resident) / self.task.count

    def report(self) -> None:
        """Prints one line of JSON and ends the process."""
        print(json.dumps(self.fields), flush=True)
        os._exit(0)


def _peak_kib() -> int:
    """The peak of this program only, because exec resets it."""
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM:")).split()[1])


def _resident() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()
