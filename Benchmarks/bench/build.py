"""Builds the server and the clients into build/benchmarks, and reports missing parts."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from collections.abc import Iterator

from bench.measure import BUILDS, ROOT
from bench.rows import Face

HERE = ROOT / "Benchmarks"
SWIFT_PACKAGES = {"swift": "swift-librealtime", "nio": "nio"}


def build(faces: list[Face]) -> None:
    """Builds what it can; the runner reports faces that cannot be built as missing."""
    BUILDS.mkdir(parents=True, exist_ok=True)
    _run("cmake", "-S", str(HERE), "-B", str(BUILDS), "-G", "Ninja")
    _run("cmake", "--build", str(BUILDS), "--", "-k", "0")
    programs = {face.program.split("/")[0] for face in faces}
    for scratch, package in SWIFT_PACKAGES.items():
        if scratch in programs:
            _run(
                *("swift", "build", "--configuration", "release", "--quiet"),
                *("--package-path", str(HERE / "peers" / package)),
                *("--scratch-path", str(BUILDS / scratch)),
            )
    if not (BUILDS / "key.pem").exists():
        _run(
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "3650", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(BUILDS / "key.pem"), "-out", str(BUILDS / "certificate.pem")),
        )


def _run(*arguments: str) -> None:
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        print(f"bench: {' '.join(arguments[:3])} failed:\n{done.stdout}{done.stderr}")


# Versions, which explain why figures differ.


def machine() -> str:
    model, memory = "an unknown processor", 0
    with open("/proc/cpuinfo") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo") as meminfo:
        memory = int(meminfo.readline().split()[1]) >> 20
    with open("/proc/cpuinfo") as cpuinfo:
        cores = sum(line.startswith("processor") for line in cpuinfo)
    return f"{cores} cores of {model}, {memory} GiB, Linux {platform.release()}"


def versions() -> str:
    return ", ".join(f"{name} {version}" for name, version in _versions())


def _versions() -> Iterator[tuple[str, str]]:
    commit = _first("git", "rev-parse", "--short", "HEAD")
    yield "librealtime", f"{(ROOT / 'VERSION').read_text().strip()} ({commit})"
    yield "Swift", _found(r"version ([\d.]+)", _first("swift", "--version"))
    yield "gcc", _first("gcc", "-dumpfullversion")
    yield "OpenSSL", _found(r"OpenSSL ([\w.]+)", _first("openssl", "version"))
    for name, package in (
        ("zlib", "zlib1g-dev"),
        ("libcurl", "libcurl4-openssl-dev"),
        ("libwebsockets", "libwebsockets-dev"),
        ("Boost", "libboost-dev"),
        ("wslay", "libwslay-dev"),
    ):
        version = _first("dpkg-query", "-W", "-f", "${Version}", package)
        if version:
            yield name, version.removeprefix("1:")
    resolved = HERE / "peers" / "nio" / "Package.resolved"
    if resolved.exists():
        for pin in json.loads(resolved.read_text())["pins"]:
            if pin["identity"] == "swift-nio":
                yield "swift-nio", pin["state"]["version"]
    python = BUILDS / "venv" / "bin" / "python"
    if python.exists():
        yield "Python", _found(r"([\d.]+)", _first(str(python), "--version"))
        wanted = (
            *("picows", "uvloop", "websockets", "aiohttp", "httpx", "httpx-sse", "pysher"),
            *("websocket-client", "ddp-asyncio", "python-ddp", "python-meteor"),
        )
        listed = _first(str(python), "-m", "pip", "list", "--format", "json")
        for package in json.loads(listed or "[]"):
            if (name := package["name"].lower()) in wanted:
                yield name, package["version"]


def _first(*arguments: str) -> str:
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT)
    except OSError:
        return ""
    return done.stdout.strip().split("\n")[0] if done.returncode == 0 else ""


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match[1] if match else "?"
