"""Long polls against Nchan with each kind of cursor, plain, by TLS and by HTTP/2; and requests
beside a held poll."""

import contextlib
import dataclasses
import http.client
import threading
import time

import pytest
from harness import PATIENCE_S, Build, expect, valgrind
from nchan import Nchan, NchanError
from poller import TOKEN, Poller

COUNT = 40


@dataclasses.dataclass(frozen=True)
class Client:
    """Makes long polls of a server's paths."""

    build: Build
    nchan: Nchan
    grind: bool = False
    tls: bool = False
    http2: bool = False

    def __call__(self, path: str, **options: object) -> Poller:
        url = self.nchan.url(path, "https" if self.tls else "http")
        if self.tls:
            options = {"ca": self.nchan.ca_file, "http2": int(self.http2), **options}
        return Poller(self.build, self.grind, url, **options)

    @property
    def protocol(self) -> str:
        return "HTTP/2.0" if self.http2 else "HTTP/1.1"

    @property
    def name(self) -> str:
        way = ", HTTP/2" if self.http2 else ", TLS" if self.tls else ""
        return way + (", valgrind" if self.grind else "")


@pytest.fixture(
    params=[
        "plain", pytest.param("plain, valgrind", marks=valgrind), "TLS",
        "HTTP/2", pytest.param("HTTP/2, valgrind", marks=valgrind),
    ]
)  # fmt: skip
def client(request: pytest.FixtureRequest, build: Build, nchan: Nchan) -> Client:
    way, *grind = request.param.split(", ")
    return Client(build, nchan, bool(grind), way != "plain", way == "HTTP/2")


@pytest.mark.parametrize("mode", ("validators", "header_id", "query_id"))
def test_nchan_by_cursor(client: Client, mode: str) -> None:
    """Half of the messages wait, half come meanwhile; a second run continues after the first."""
    channel = f"poll_{mode}_{id(client)}"
    url = f"/ps/{channel}"
    for number in range(COUNT // 2):
        client.nchan.publish(channel, str(number))

    def publish_the_rest() -> None:
        for number in range(COUNT // 2, COUNT):
            client.nchan.publish(channel, str(number))

    publisher = threading.Thread(target=publish_the_rest)
    publisher.start()
    texts: list[str] = []
    last = ""
    try:
        for count in (COUNT - 10, 10):
            with client(url, cursor=mode, id=last, count=count) as poller:
                for _ in range(count):
                    name, own, kind, text = poller.message()
                    expect(own and name.count(":") == 1, f"id {name}")
                    texts.append(text)
                last = poller.end()
                expect(last == name, f"ended at {last}, the last message is {name}")
    finally:
        publisher.join()
    expect(texts == [str(number) for number in range(COUNT)], f"received {texts}")


def test_nchan_without_cursor(client: Client) -> None:
    """Each poll starts at the oldest message."""
    channel = f"poll_none_{id(client)}"
    for text in ("first", "second"):
        client.nchan.publish(channel, text)
    with client(f"/ps/{channel}", cursor="none", count=3) as poller:
        expect([poller.message()[3] for _ in range(3)] == ["first"] * 3, "not the oldest")
        poller.end()


def test_nchan_by_interval(client: Client) -> None:
    """A server that does not hold polls answers 304; it is asked once per interval."""
    channel = f"poll_interval_{id(client)}"
    client.nchan.publish(channel, "one")
    with client(f"/ip/{channel}", interval=10, count=2) as poller:
        expect(poller.message()[3] == "one", "not the first")
        poller.wait_for_polls(5)
        client.nchan.publish(channel, "two")
        expect(poller.message()[3] == "two", "not the second")
        poller.end()


def test_nchan_in_batches(client: Client) -> None:
    """Waiting messages come in one response; only its last part has an id."""
    channel = f"poll_batch_{id(client)}"
    for number in range(5):
        client.nchan.publish(channel, str(number))
    with client(f"/lpm/{channel}", count=6) as poller:
        batch = [poller.message() for _ in range(5)]
        expect([text for *_, text in batch] == list("01234"), f"received {batch}")
        expect([own for _, own, *_ in batch] == [False] * 4 + [True], f"received {batch}")
        expect(batch[0][0] == "-" and ":" in batch[4][0], f"received {batch}")
        client.nchan.publish(channel, "5")
        _, own, _, text = poller.message()
        expect(own and text == "5", f"received {text}")
        poller.end()


def test_nchan_holds_and_gives_up(client: Client) -> None:
    """408 after two seconds is not an error, and the next poll starts at once."""
    channel = f"poll_408_{id(client)}"
    client.nchan.publish(channel, "before")
    with client(f"/to/{channel}", interval=600_000, count=2) as poller:
        first = poller.message()
        # The second poll is held and answered by 408.
        poller.wait_for_polls(3)
        wait_until_held(client.nchan, channel)
        client.nchan.publish(channel, "after")
        second = poller.message()
        expect((first[3], second[3]) == ("before", "after"), f"received {first}, {second}")
        poller.end()


def test_nchan_channel_is_deleted(client: Client) -> None:
    """410 is reported, and the polls start over."""
    channel = f"poll_410_{id(client)}"
    client.nchan.publish(channel, "before")
    with client(f"/ps/{channel}", interval=10, count=2) as poller:
        expect(poller.message()[3] == "before", "not the first")
        poller.wait_for_polls(2)
        wait_until_held(client.nchan, channel)
        delete_or_ask(client.nchan, channel, "DELETE")
        poller.expect("error RT_ERROR_GONE 410 10")
        client.nchan.publish(channel, "after")
        expect(poller.message()[3] == "after", "not the second")
        poller.end()


def wait_until_held(nchan: Nchan, channel: str) -> None:
    """Waits until the server reports a subscriber."""
    deadline = time.monotonic() + PATIENCE_S
    while "active subscribers: 1" not in (said := delete_or_ask(nchan, channel, "GET")):
        expect(time.monotonic() < deadline, f"nobody listens to {channel}: {said}")
        time.sleep(0.005)  # A server that we asked all the time could not serve the poll.


def delete_or_ask(nchan: Nchan, channel: str, method: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", nchan.port, timeout=20)
    try:
        connection.request(method, f"/pub/{channel}", headers={"Accept": "text/plain"})
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def test_nchan_asks_for_a_token(client: Client) -> None:
    channel = f"poll_token_{id(client)}"
    client.nchan.publish(channel, "one")
    url = f"/tok/{channel}"
    with client(url, token=TOKEN, count=1) as poller:
        poller.expect("credentials 401")
        expect(poller.message()[3] == "one", "not the message")
        poller.end()
    with client(url, token="bad") as poller:
        poller.expect("credentials 401", "fatal RT_ERROR_HTTP_STATUS 401")
        poller.end()
    with client(url) as poller:
        poller.expect("fatal RT_ERROR_HTTP_STATUS 401")
        poller.end()


def test_nchan_redirects(client: Client) -> None:
    channel = f"poll_moved_{id(client)}"
    for text in ("one", "two"):
        client.nchan.publish(channel, text)
    with client(f"/moved/{channel}", bearer=TOKEN, count=2) as poller:
        expect([poller.message()[3] for _ in range(2)] == ["one", "two"], "not both")
        poller.end()
    with client(f"/moved/{channel}", redirects=0) as poller:
        poller.expect("fatal RT_ERROR_HTTP_STATUS 307")
        poller.end()


def test_nchan_reloads(client: Client) -> None:
    """A restarting server drops the poll, and the client returns to it. The test has its own
    server, since Nchan's workers do not always find each other again."""
    with Nchan(tls=client.tls) as own:
        comes_back(dataclasses.replace(client, nchan=own))


def comes_back(client: Client) -> None:
    channel = f"poll_reload_{id(client)}"
    client.nchan.publish(channel, "before")
    url = f"/ps/{channel}"
    # A worker that exits may keep a poll forever; the client must not wait for it.
    with client(url, max_delay=10, interval=10, poll_timeout=3000) as poller:
        expect(poller.message()[3] == "before", "not the first")
        poller.wait_for_polls(2)
        wait_until_held(client.nchan, channel)
        client.nchan.reload()
        arrived = threading.Event()

        def publish_again_and_again() -> None:
            # Exiting workers take messages with them, and drop publishers.
            while not arrived.wait(0.02):
                with contextlib.suppress(OSError, http.client.HTTPException, NchanError):
                    client.nchan.publish(channel, "after")

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


def test_nchan_speaks_the_protocol(client: Client) -> None:
    with client("/rest/protocol", count=1) as poller:
        expect(poller.message()[3] == client.protocol, "another protocol")
        poller.end()


def test_a_held_poll_blocks_no_post(client: Client) -> None:
    """While the server holds a poll, it answers requests from the same loop; only the last request
    ends the poll. They use their own connection, or streams beside the poll by HTTP/2."""
    channel = f"held_{id(client)}"
    version = 20 if client.http2 else 11
    with client(f"/held/{channel}", poll_timeout=0, count=1) as poller:
        wait_until_held(client.nchan, channel)
        for number in range(5):
            poller.tell(f"/held/{channel}_{number} other")
            poller.expect(f"posted RT_OK 202 {version}")
        poller.tell(f"/held/{channel} hello")
        # The answer and the message can come in either order.
        lines = [line for line in (poller.line() for _ in range(3)) if line != "open"]
        # 202 means that nobody got the message, 201 that a subscriber did.
        expect(f"posted RT_OK 201 {version}" in lines, f"received {lines}")
        expect(any(line.endswith(" hello") for line in lines), f"received {lines}")
        poller.end()
    polls, posts = connections(client, channel)
    expect(len(polls) == 1 and len(posts) > 0, f"polls on {polls}, requests on {posts}")
    expect((posts == polls) == client.http2, f"polls on {polls}, requests on {posts}")


def connections(client: Client, channel: str) -> tuple[set[str], set[str]]:
    """The connections of polls and of requests, from nginx's log of finished requests."""
    log = client.nchan.folder / "held.log"
    deadline = time.monotonic() + PATIENCE_S
    lines: list[list[str]] = []
    while len(lines) < 7:
        expect(time.monotonic() < deadline, f"nginx has written {lines}")
        text = log.read_text()
        whole = text[: text.rfind("\n") + 1].splitlines()
        lines = [line.split() for line in whole if line.startswith(f"/held/{channel}")]
    expect(all(line[2] == client.protocol for line in lines), f"nginx has written {lines}")
    polls = {connection for _, method, _, connection in lines if method == "GET"}
    return polls, {connection for _, method, _, connection in lines if method == "POST"}
