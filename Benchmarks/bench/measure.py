"""Runs the server and the clients, each on its own core, and checks their reports."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench.rows import CPU, WALL, Face, Row

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILDS = ROOT / "build" / "benchmarks"
SERVER_CORE, CLIENT_CORE = 0, 1
NOT_SUPPORTED = 3
# One client needs a minute for an idle run, because it is quadratic.
TIME_LIMIT = 180

Sample = dict[str, float]


class ClientError(Exception):
    """The client failed, or reported other messages than were sent."""


@dataclass
class Cell:
    """The samples of one face in one row."""

    samples: list[Sample] = field(default_factory=list)
    #: Why there are no samples.
    reason: str = ""
    #: Whether the lowest sample counts, not the median.
    takes_lowest: bool = False

    def value(self, metric: str) -> float | None:
        """The median of a metric, or the lowest value; times are per message."""
        values = [
            sample[metric] / (sample["messages"] if metric in (CPU, WALL) else 1)
            for sample in self.samples
            if metric in sample
        ]
        if not values:
            return None
        return min(values) if self.takes_lowest else statistics.median(values)

    def spread(self) -> float:
        """The range of the runs' CPU times, as a fraction of their median."""
        values = [sample["cpu_ns"] / sample["messages"] for sample in self.samples]
        middle = statistics.median(values) if values else 0
        return (max(values) - min(values)) / middle if middle else 0


#: By row, then by face.
Results = dict[str, dict[str, Cell]]


def _pinned(core: int) -> list[str]:
    return ["taskset", "-c", str(core)] if (os.cpu_count() or 1) > 1 else []


@dataclass(frozen=True)
class Server:
    port: int
    tls_port: int

    def url(self, row: Row, count: int) -> str:
        path = row.path.format(n=count)
        if row.tls:
            return f"wss://localhost:{self.tls_port}{path}"
        scheme = "http" if row.is_http else "ws"
        return f"{scheme}://127.0.0.1:{self.port}{path}"


@contextmanager
def running_server() -> Iterator[Server]:
    program, certificate = BUILDS / "bin" / "bench-server", BUILDS / "certificate.pem"
    arguments = [str(program), "serve", str(certificate), str(BUILDS / "key.pem")]
    with subprocess.Popen(
        [*_pinned(SERVER_CORE), *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                raise ClientError("the server did not start")
            port, tls_port = map(int, line.split())
            yield Server(port, tls_port)
        finally:
            process.kill()


def command(face: Face) -> list[str]:
    if face.is_python:
        client = ROOT / "Benchmarks" / "peers" / "python" / "client.py"
        return [str(BUILDS / "venv" / "bin" / "python"), str(client), face.program[7:]]
    return [str(BUILDS / face.program)]


def missing(face: Face) -> str:
    """Why a face cannot be measured; "" if it can."""
    program = pathlib.Path(command(face)[0])
    return "" if program.exists() else f"{face.label}: not built or not installed"


@functools.cache
def expected(row: Row, count: int, keeps_documents: bool) -> tuple[int, int | None]:
    """The bytes of payload, and the sum of last bytes if the server makes the messages. For
    documents, the bytes of titles and the sum of numbers."""
    if row.flood:
        # Each idle connection receives the first message as a greeting.
        each = 1 if row.mode == "greet" else count
        program = BUILDS / "bin" / "bench-server"
        line = subprocess.run(
            [program, "expect", row.flood, str(each)], capture_output=True, text=True, check=True
        ).stdout.split()
        if row.is_ddp:
            return int(line[0]), int(line[3 if keeps_documents else 1])
        times = count if row.mode == "greet" else 1
        return int(line[0]) * times, int(line[1]) * times
    if row.is_answered:
        return row.size * count, (7 * (row.size - 1) + 3) % 256 * count
    return row.size * count, None


def run_client(server: Server, face: Face, row: Row, count: int) -> Sample | None:
    """One measurement; None if the client does not know the mode."""
    arguments = [face.modes[row.mode], server.url(row, count), str(count), str(row.size)]
    if row.tls:
        arguments.append(str(BUILDS / "certificate.pem"))
    environment = os.environ | {
        "LIBREALTIME_PATH": str(ROOT / "build" / "librealtime.so"),
        "PYTHONPATH": str(ROOT / "bindings" / "python" / "src"),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    try:
        done = subprocess.run(
            [*_pinned(CLIENT_CORE), *command(face), *arguments],
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        raise ClientError(f"not done after {TIME_LIMIT} s") from None
    if done.returncode == NOT_SUPPORTED:
        return None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise ClientError(f"exit code {done.returncode}: {lines[-1]}")
    sample: Sample = json.loads(done.stdout.splitlines()[-1])
    check(sample, row, count)
    return sample


def check(sample: Sample, row: Row, count: int) -> None:
    size, checksum = expected(row, count, "documents" in sample)
    if sample["messages"] != count or sample["bytes"] != size:
        raise ClientError(
            f"{sample['messages']} messages of {sample['bytes']} bytes, not {count} of {size}"
        )
    if checksum is not None and sample.get("checksum", checksum) != checksum:
        raise ClientError(f"checksum {sample['checksum']}, not {checksum}")


def calibrate(server: Server, face: Face, row: Row, seconds: float) -> int | None:
    """How many messages take about this long; None if the face cannot do the row."""
    if row.count:
        return row.python_count if face.is_python and row.python_count else row.count
    count = row.first
    for _ in range(4):
        sample = run_client(server, face, row, count)
        if sample is None:
            return None
        wall = max(sample["wall_ns"] / 1e9, 1e-4)
        wanted = max(20, min(round(count * seconds / wall), count * 200))
        if wall > seconds / 3:
            return wanted
        count = wanted
    return count


def measure_row(
    server: Server,
    row: Row,
    faces: list[Face],
    repetitions: int,
    seconds: float,
    takes_lowest: bool = False,
) -> dict[str, Cell]:
    """Runs all faces in turn, then all of them again, so that a drift affects all of them."""
    cells = {face.name: Cell(takes_lowest=takes_lowest) for face in faces}
    counts: dict[str, int] = {}
    for face in faces:
        reason = missing(face)
        try:
            count = None if reason else calibrate(server, face, row, seconds)
        except ClientError as error:
            count, reason = None, f"{face.label}: {error}"
            print(f"  {reason}", file=sys.stderr)
        if count:
            counts[face.name] = count
        cells[face.name].reason = reason
    for _ in range(1 if row.is_memory else repetitions):
        for face in faces:
            if face.name not in counts:
                continue
            try:
                sample = run_client(server, face, row, counts[face.name])
                if sample:
                    cells[face.name].samples.append(sample)
                else:
                    del counts[face.name]
            except ClientError as error:
                # After one wrong count, the face gets no figure in this row.
                del counts[face.name]
                cells[face.name] = Cell(reason=f"{face.label}: {error}")
                print(f"  {row.name}: {face.label}: {error}", file=sys.stderr)
    return cells
