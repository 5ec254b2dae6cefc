"""Connections that are made again: by the library's own reconnection, and by iterating."""

from __future__ import annotations

import asyncio

import pytest
from servers import answers, raw_server

import librealtime
from librealtime import Backoff, ConnectionClosedError, ConnectionClosedOK, State
from librealtime.sync import connect, reconnect

#: Retries at once.
AT_ONCE = Backoff(initial_delay=0, max_attempts=20)
BUSY = answers(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
GONE = answers(b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n")


def test_delays():
    plain = Backoff(initial_delay=1, factor=3, max_delay=10, jitter="none", max_attempts=4)
    assert list(plain) == [1, 3, 9, 10]
    assert list(Backoff(initial_delay=0, max_attempts=2)) == [0, 0]
    for jitter, least in (("equal", 0.5), ("full", 0), ("decorrelated", 1)):
        delays = list(Backoff(jitter=jitter, max_attempts=50))
        assert len(delays) == 50
        assert least <= delays[0] <= 3
        assert all(0 <= delay <= 30 for delay in delays)
    endless = iter(Backoff(max_delay=0.5))
    assert all(next(endless) <= 0.5 for _ in range(1000))


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"initial_delay": -1}, "initial_delay"),
        ({"max_delay": float("nan")}, "max_delay"),
        ({"factor": 0.5}, "factor"),
        ({"factor": float("inf")}, "factor"),
        ({"jitter": "some"}, "jitter"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"stable_time": -0.1}, "stable_time"),
    ],
    ids=repr,
)
def test_backoffs_that_cannot_be(server, options, culprit):
    with pytest.raises(librealtime.InvalidArgument, match=culprit):
        list(Backoff(**options))
    with pytest.raises(librealtime.InvalidArgument, match=culprit):
        connect(server.url + "/echo", reconnect=Backoff(**options))


def test_options_that_need_reconnect(server):
    for options in (
        {"on_lost": print},
        {"on_reconnect": print},
        {"offline_queue": 1},
        {"reconnect_after_normal_close": True},
    ):
        with pytest.raises(librealtime.InvalidArgument, match="need reconnect"):
            connect(server.url, **options)
    with pytest.raises(TypeError, match="a Backoff is expected"):
        connect(server.url, reconnect=5)
    for options in ({"initial_delay": None}, {"factor": "2"}, {"max_attempts": 1.5}):
        with pytest.raises(TypeError):
            connect(server.url, reconnect=Backoff(**options))


def test_one_connection_outlives_losses(run, own_server):
    own_server.fates.extend(["drop", "1001", "1012"])
    lost, attempts = [], []

    async def main():
        async with librealtime.connect(
            own_server.url + "/flaky",
            reconnect=AT_ONCE,
            on_lost=lost.append,
            on_reconnect=lambda attempt: attempts.append(attempt.number),
        ) as ws:
            for expected in ("2 left", "1 left", "0 left", "0 left"):
                assert await ws.recv() == expected
            await ws.send("hello")
            assert await ws.recv() == "hello"
            assert ws.statistics.connections == 4
            assert ws.state is State.OPEN

    run(main())
    assert [loss.code for loss in lost] == [1006, 1001, 1012]
    assert [loss.attempt for loss in lost] == attempts == [1, 2, 3]
    assert lost[0].error.name == "RT_ERROR_CONNECTION_LOST"
    assert lost[1].error is None
    assert all(loss.delay == 0 for loss in lost)


def test_a_normal_close_is_outlived_where_that_is_wanted(run, own_server):
    own_server.fates.extend(["1000", "drop", "1000"])
    lost = []

    async def main():
        async with librealtime.connect(
            own_server.url + "/flaky",
            reconnect=AT_ONCE,
            reconnect_after_normal_close=True,
            on_lost=lost.append,
        ) as ws:
            for expected in ("2 left", "1 left", "0 left", "0 left"):
                assert await ws.recv() == expected
        # Our own close ends it.
        assert ws.state is State.CLOSED

    run(main())
    assert [loss.code for loss in lost] == [1000, 1006, 1000]


def test_a_normal_close_is_outlived_without_asyncio(own_server):
    own_server.fates.append("1000")
    with connect(
        own_server.url + "/flaky", reconnect=AT_ONCE, reconnect_after_normal_close=True
    ) as ws:
        assert [ws.recv() for _ in range(2)] == ["0 left", "0 left"]
    assert ws.state is State.CLOSED


def test_one_connection_outlives_losses_without_asyncio(own_server):
    own_server.fates.extend(["drop", "drop"])
    lost = []
    with connect(own_server.url + "/flaky", reconnect=AT_ONCE, on_lost=lost.append) as ws:
        assert [ws.recv() for _ in range(3)] == ["1 left", "0 left", "0 left"]
        ws.send("hello")
        assert ws.recv() == "hello"
    assert len(lost) == 2


def test_messages_for_a_callback_come_again(run, own_server):
    own_server.fates.append("drop")

    async def main():
        got = asyncio.Queue()
        async with librealtime.connect(
            own_server.url + "/flaky", reconnect=AT_ONCE, on_message=got.put_nowait
        ):
            assert [await got.get(), await got.get()] == ["0 left", "0 left"]

    run(main())


def test_an_attempt_may_change_the_url(run, own_server):
    own_server.fates.append("drop")

    def on_reconnect(attempt):
        attempt.set_url(own_server.url + "/record")
        attempt.clear_headers()
        attempt.set_header("X-Attempt", str(attempt.number))
        attempt.set_bearer_token("fresh")
        attempt.set_network(librealtime.Network(proxy=None))
        with pytest.raises(librealtime.InvalidURI):
            attempt.set_url("nonsense")

    async def main():
        async with librealtime.connect(
            own_server.url + "/flaky",
            reconnect=AT_ONCE,
            on_reconnect=on_reconnect,
            cookies={"a": "b"},
        ) as ws:
            assert await ws.recv() == "0 left"
            return await asyncio.to_thread(own_server.requests.get, timeout=30)

    headers = run(main())[0].headers
    assert headers["X-Attempt"] == "1"
    assert headers["Authorization"] == "Bearer fresh"
    assert "Cookie" not in headers


def test_an_attempt_is_vetoed(run, own_server):
    own_server.fates.extend(["1011", "drop"])

    async def main(on_reconnect, code):
        async with librealtime.connect(
            own_server.url + "/flaky", reconnect=AT_ONCE, on_reconnect=on_reconnect
        ) as ws:
            await ws.recv()
            with pytest.raises(ConnectionClosedError) as raised:
                await ws.recv()
            assert raised.value.code == code
            assert ws.state is State.CLOSED

    run(main(lambda attempt: False, 1011))

    def fails(attempt):
        raise KeyError("no token")

    async def with_handler():
        failures = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))
        await main(fails, 1006)
        assert isinstance(failures[0], KeyError)

    run(with_handler())


def test_a_failure_that_is_final_ends_it(run):
    async def main(url):
        await librealtime.connect(url, reconnect=AT_ONCE)

    with raw_server(BUSY, BUSY, GONE) as url, pytest.raises(librealtime.InvalidStatus) as raised:
        run(main(url))
    assert raised.value.response.status_code == 410
    two = Backoff(initial_delay=0, max_attempts=2)
    with raw_server(BUSY, BUSY, BUSY) as url, pytest.raises(librealtime.InvalidStatus) as raised:
        connect(url, reconnect=two)
    assert raised.value.response.status_code == 503


def test_a_ping_is_lost_with_its_connection(run, own_server):
    async def main():
        lost = asyncio.Queue()
        own_server.fates.append("drop")
        async with librealtime.connect(
            own_server.url + "/flaky", reconnect=AT_ONCE, on_lost=lost.put_nowait
        ) as ws:
            with pytest.raises(ConnectionClosedError, match="lost during"):
                while True:
                    await (await ws.ping())
            assert await ws.recv() == "0 left"
            assert await ws.recv() == "0 left"
            assert await (await ws.ping()) > 0

    run(main())


def test_iterating(run, own_server):
    own_server.fates.extend(["drop", "1000", "echo"])
    ends = []

    async def until_it_echoes():
        async for ws in librealtime.connect(own_server.url + "/flaky", reconnect_delays=AT_ONCE):
            try:
                async for message in ws:
                    if message == "0 left":
                        return
                ends.append("closed")
            except librealtime.ConnectionClosed as error:
                ends.append(error.code)

    async def main():
        await until_it_echoes()
        # The last one is closed when the loop is left.
        return [(await asyncio.to_thread(own_server.closes.get, timeout=30))[0] for _ in range(3)]

    assert run(main()) == [1006, 1000, 1000]
    assert ends == [1006, "closed"]


def test_iterating_to_the_end_of_the_program(run, own_server):
    left = []

    async def main():
        async for ws in librealtime.connect(own_server.url + "/silent"):
            left.append(ws)
            return

    run(main())
    assert left[0].state is State.CLOSED
    assert own_server.closes.get(timeout=30)[0] in (1000, 1001)


def test_iterating_without_asyncio(own_server):
    own_server.fates.extend(["drop", "1000", "echo"])
    ends = []
    for ws in reconnect(own_server.url + "/flaky", reconnect_delays=AT_ONCE):
        try:
            for message in ws:
                if message == "0 left":
                    # All use one loop of the library.
                    assert ws.loop_statistics.connections == 3
                    break
            else:
                ends.append("closed")
                continue
            break
        except librealtime.ConnectionClosed as error:
            ends.append(error.code)
    assert ends == [1006, "closed"]
    del ws
    assert [own_server.closes.get(timeout=30)[0] for _ in range(3)] == [1006, 1000, 1000]


def test_iterating_retries_temporary_failures(run):
    async def main(url, **options):
        async for _ in librealtime.connect(url, reconnect_delays=AT_ONCE, **options):
            pytest.fail("it opened")

    with raw_server(BUSY, lambda connection: None, GONE) as url:

        def retried(error):
            if isinstance(error, librealtime.InvalidHandshake) and "410" not in str(error):
                return None
            return librealtime.process_exception(error)

        with pytest.raises(librealtime.InvalidStatus, match="410"):
            run(main(url, process_exception=retried))
    with raw_server(BUSY) as url, pytest.raises(ZeroDivisionError) as raised:
        run(main(url, process_exception=lambda error: ZeroDivisionError("enough")))
    assert isinstance(raised.value.__cause__, librealtime.InvalidStatus)
    with pytest.raises(librealtime.InvalidURI):
        run(main("nonsense"))


def test_iterating_ends_with_the_attempts(own_server):
    two = Backoff(initial_delay=0, max_attempts=2)
    with raw_server(BUSY, BUSY, BUSY) as url, pytest.raises(librealtime.InvalidStatus):
        for _ in reconnect(url, reconnect_delays=two):
            pytest.fail("it opened")
    # A server that accepts and then closes counts, too.
    own_server.fates.extend(["1000"] * 10)
    rounds = 0
    with pytest.raises(ConnectionClosedOK):
        for ws in reconnect(own_server.url + "/flaky", reconnect_delays=two):
            ws.wait_closed()
            rounds += 1
    assert rounds == 3
    # A connection that the caller leaves does not count.
    own_server.fates.clear()
    for ws in reconnect(own_server.url + "/flaky", reconnect_delays=two):
        rounds += 1
        if rounds == 10:
            break
        assert ws.recv() == "0 left"


def test_which_failures_are_retried():
    def refused(status):
        response = librealtime.Response(status, "", librealtime.Headers())
        return librealtime.InvalidStatus(-36, "refused", response)

    for error in (
        *map(refused, (408, 425, 429, 500, 503, 599)),
        librealtime.ConnectFailed(-31, "no"),
        librealtime.ConnectionTimeout(-34, "late"),
        OSError(),
    ):
        assert librealtime.process_exception(error) is None
    for error in (
        *map(refused, (200, 302, 400, 401, 404)),
        librealtime.SecurityError(-39, "no"),
        librealtime.InvalidURI(-7, "no"),
        librealtime.InvalidHandshake(-35, "no"),
        KeyError(),
    ):
        assert librealtime.process_exception(error) is error


@pytest.mark.parametrize(
    ("header", "least", "most"), [("2", 2, 2), ("x", 0, 0), ("9" * 5000, 300, 300), ("-1", 0, 0)]
)
def test_retry_after_is_waited_for(header, least, most):
    from librealtime._core.reconnect import Retries

    response = librealtime.Response(503, "", librealtime.Headers([("Retry-After", header)]))
    error = librealtime.InvalidStatus(-36, "refused", response)
    retries = Retries(AT_ONCE, librealtime.process_exception)
    assert least <= retries.after_failure(error) <= most
