"""Long polls against Nchan, in every way of a cursor."""

import contextlib
import functools
import http.client
import threading
from collections.abc import Callable

from harness import Build, Suite, expect
from nchan import Nchan, NchanError
from poller import TOKEN, Make, Poller

COUNT = 40


def add(suite: Suite, build: Build, nchan: Nchan) -> None:
    tests: list[tuple[str, Callable[..., None]]] = []
    for mode in ("validators", "header_id", "query_id"):
        test = functools.partial(nchan_by_cursor, nchan=nchan, mode=mode)
        tests.append((f"poll Nchan by {mode}", test))
    for function in (
        nchan_without_cursor, nchan_by_interval, nchan_in_batches, nchan_holds_and_gives_up,
        nchan_channel_is_deleted, nchan_asks_for_a_token, nchan_redirects, nchan_reloads,
    ):  # fmt: skip
        name = function.__name__.replace("_", " ")
        tests.append((f"poll {name}", functools.partial(function, nchan=nchan)))
    for name, test in tests:
        for grind in (False, True):
            make = functools.partial(Poller, build, grind)
            suite.add(name + (", valgrind" if grind else ""), functools.partial(test, make))


def nchan_by_cursor(make: Make, nchan: Nchan, mode: str) -> None:
    """Half of the messages wait, half come meanwhile; a second run goes on behind the first."""
    channel = f"poll_{mode}_{id(make)}"
    url = nchan.url(f"/ps/{channel}", "http")
    for number in range(COUNT // 2):
        nchan.publish(channel, str(number))

    def publish_the_rest() -> None:
        for number in range(COUNT // 2, COUNT):
            nchan.publish(channel, str(number))

    publisher = threading.Thread(target=publish_the_rest)
    publisher.start()
    texts: list[str] = []
    last = ""
    try:
        for count in (COUNT - 10, 10):
            with make(url, cursor=mode, id=last, count=count) as poller:
                for _ in range(count):
                    name, own, kind, text = poller.message()
                    expect(own and name.count(":") == 1, f"id {name}")
                    texts.append(text)
                last = poller.end()
                expect(last == name, f"ended at {last}, the last message is {name}")
    finally:
        publisher.join()
    expect(texts == [str(number) for number in range(COUNT)], f"received {texts}")


def nchan_without_cursor(make: Make, nchan: Nchan) -> None:
    """Each poll begins at the oldest message."""
    channel = f"poll_none_{id(make)}"
    for text in ("first", "second"):
        nchan.publish(channel, text)
    with make(nchan.url(f"/ps/{channel}", "http"), cursor="none", count=3) as poller:
        expect([poller.message()[3] for _ in range(3)] == ["first"] * 3, "not the oldest")
        poller.end()


def nchan_by_interval(make: Make, nchan: Nchan) -> None:
    """A server that does not hold answers 304; it is asked every interval."""
    channel = f"poll_interval_{id(make)}"
    nchan.publish(channel, "one")
    with make(nchan.url(f"/ip/{channel}", "http"), interval=10, count=2) as poller:
        expect(poller.message()[3] == "one", "not the first")
        poller.wait_for_polls(5)
        nchan.publish(channel, "two")
        expect(poller.message()[3] == "two", "not the second")
        poller.end()


def nchan_in_batches(make: Make, nchan: Nchan) -> None:
    """What waits comes in one answer; only its last part has an id."""
    channel = f"poll_batch_{id(make)}"
    for number in range(5):
        nchan.publish(channel, str(number))
    with make(nchan.url(f"/lpm/{channel}", "http"), count=6) as poller:
        batch = [poller.message() for _ in range(5)]
        expect([text for *_, text in batch] == list("01234"), f"received {batch}")
        expect([own for _, own, *_ in batch] == [False] * 4 + [True], f"received {batch}")
        expect(batch[0][0] == "-" and ":" in batch[4][0], f"received {batch}")
        nchan.publish(channel, "5")
        _, own, _, text = poller.message()
        expect(own and text == "5", f"received {text}")
        poller.end()


def nchan_holds_and_gives_up(make: Make, nchan: Nchan) -> None:
    """408 after two seconds is nothing new, and the next poll begins at once."""
    channel = f"poll_408_{id(make)}"
    nchan.publish(channel, "before")
    with make(nchan.url(f"/to/{channel}", "http"), interval=600_000, count=2) as poller:
        first = poller.message()
        # The second poll is held and answered by 408, the third is on its way.
        poller.wait_for_polls(3)
        nchan.publish(channel, "after")
        second = poller.message()
        expect((first[3], second[3]) == ("before", "after"), f"received {first}, {second}")
        poller.end()


def nchan_channel_is_deleted(make: Make, nchan: Nchan) -> None:
    """410 is told, and the polls begin anew."""
    channel = f"poll_410_{id(make)}"
    nchan.publish(channel, "before")
    with make(nchan.url(f"/ps/{channel}", "http"), interval=10, count=2) as poller:
        expect(poller.message()[3] == "before", "not the first")
        poller.wait_for_polls(2)
        # Held by then: the server says how many listen.
        while "active subscribers: 1" not in delete_or_ask(nchan, channel, "GET"):
            pass
        delete_or_ask(nchan, channel, "DELETE")
        poller.expect("error RT_ERROR_GONE 410 10")
        nchan.publish(channel, "after")
        expect(poller.message()[3] == "after", "not the second")
        poller.end()


def delete_or_ask(nchan: Nchan, channel: str, method: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", nchan.port, timeout=20)
    try:
        connection.request(method, f"/pub/{channel}", headers={"Accept": "text/plain"})
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def nchan_asks_for_a_token(make: Make, nchan: Nchan) -> None:
    channel = f"poll_token_{id(make)}"
    nchan.publish(channel, "one")
    url = nchan.url(f"/tok/{channel}", "http")
    with make(url, token=TOKEN, count=1) as poller:
        poller.expect("credentials 401")
        expect(poller.message()[3] == "one", "not the message")
        poller.end()
    with make(url, token="bad") as poller:
        poller.expect("credentials 401", "fatal RT_ERROR_HTTP_STATUS 401")
        poller.end()
    with make(url) as poller:
        poller.expect("fatal RT_ERROR_HTTP_STATUS 401")
        poller.end()


def nchan_redirects(make: Make, nchan: Nchan) -> None:
    channel = f"poll_moved_{id(make)}"
    for text in ("one", "two"):
        nchan.publish(channel, text)
    with make(nchan.url(f"/moved/{channel}", "http"), bearer=TOKEN, count=2) as poller:
        expect([poller.message()[3] for _ in range(2)] == ["one", "two"], "not both")
        poller.end()
    with make(nchan.url(f"/moved/{channel}", "http"), redirects=0) as poller:
        poller.expect("fatal RT_ERROR_HTTP_STATUS 307")
        poller.end()


def nchan_reloads(make: Make, nchan: Nchan) -> None:
    """A server that restarts drops the poll, and is come back to. One of its own, since Nchan's
    workers do not always find each other again."""
    with Nchan() as own:
        comes_back(make, own)


def comes_back(make: Make, nchan: Nchan) -> None:
    channel = f"poll_reload_{id(make)}"
    nchan.publish(channel, "before")
    url = nchan.url(f"/ps/{channel}", "http")
    # A worker that goes may keep a poll for ever; the client does not.
    with make(url, max_delay=10, interval=10, poll_timeout=3000) as poller:
        expect(poller.message()[3] == "before", "not the first")
        poller.wait_for_polls(2)
        while "active subscribers: 1" not in delete_or_ask(nchan, channel, "GET"):
            pass
        nchan.reload()
        arrived = threading.Event()

        def publish_again_and_again() -> None:
            # The workers that go take messages with them, and drop publishers.
            while not arrived.wait(0.02):
                with contextlib.suppress(OSError, http.client.HTTPException, NchanError):
                    nchan.publish(channel, "after")

        publisher = threading.Thread(target=publish_again_and_again)
        publisher.start()
        try:
            line = poller.line()
            while line == "open" or line.startswith("error "):
                line = poller.line()
        finally:
            arrived.set()
            publisher.join()
        expect(line.startswith("message ") and line.endswith(" after"), f"received {line!r}")
        poller.end()
