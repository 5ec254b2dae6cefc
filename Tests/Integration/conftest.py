"""Fixtures and options of the integration tests: the library, servers, and clients."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import pathlib
import resource
import signal
from collections.abc import Callable, Iterator

import pytest
from bot import SECRET
from command_line import Tool
from ddp_server import DDPServer
from demo_process import DemoProcess
from harness import PATIENCE_S, ROOT, Build, Probe  # sets the path for the next ones
from ladder_server import LadderServer
from namespaces import refusal
from nchan import Nchan
from pusher_server import PusherServer
from servers import Servers
from token_server import TokenServer

# Programs started in the background, or by nohup, ignore some signals, and so do their children;
# tests send them.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)

for variable in [name for name in os.environ if name.lower().endswith("_proxy")]:
    # Tests must not use this machine's proxies.
    del os.environ[variable]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--library", default=str(ROOT / "build"), help="the folder of librealtime.so")
    parser.addoption("--seeds", type=int, default=4, help="how many courses of Spreadbot's hops")
    parser.addoption("--from", type=int, default=1, dest="first_seed", help="the first of them")


def pytest_configure(config: pytest.Config) -> None:
    library = pathlib.Path(config.getoption("--library")).resolve() / "librealtime.so"
    if not library.exists():
        pytest.exit(f"{library} is missing: run `make build` first", 2)
    # Python loads the library when the package is imported.
    os.environ["LIBREALTIME_PATH"] = str(library)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs tests that are coroutines."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    asyncio.run(asyncio.wait_for(test, PATIENCE_S))
    return True


@pytest.fixture(scope="session")
def build(pytestconfig: pytest.Config) -> Iterator[Build]:
    made = Build(pathlib.Path(pytestconfig.getoption("--library")).resolve(), ROOT / "include")
    yield made
    made.close()


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    with Servers() as running:
        yield running


@pytest.fixture(scope="session")
def nchan() -> Iterator[Nchan]:
    with Nchan(tls=True) as running:
        yield running


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoProcess]:
    running = DemoProcess(tmp_path_factory.mktemp("demo") / "output")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def namespaces() -> None:
    if reason := refusal():
        pytest.skip(f"no network namespaces: {reason}")


@pytest.fixture(scope="session")
def tool(build: Build) -> Tool:
    return Tool(build)


@pytest.fixture
def server() -> Iterator[LadderServer]:
    with LadderServer() as running:
        yield running


@pytest.fixture
def tokens() -> Iterator[TokenServer]:
    with TokenServer(SECRET) as running:
        yield running


@pytest.fixture
def pusher_server(servers: Servers) -> Iterator[PusherServer]:
    with PusherServer(servers.tls()) as running:
        yield running


@pytest.fixture
def ddp_server(servers: Servers) -> Iterator[DDPServer]:
    with DDPServer(servers.tls()) as running:
        yield running


@pytest.fixture
def grind() -> bool:
    """Whether clients run under valgrind: see `harness.also_under_valgrind`."""
    return False


@pytest.fixture
def make(build: Build, grind: bool) -> Callable[..., Probe]:
    """Makes WebSocket clients, which print their events."""
    return functools.partial(Probe, build, valgrind=grind, log=4)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    """A file for ids, in its own folder."""
    return tmp_path / "ids"
