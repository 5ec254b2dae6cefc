"""Servers that disappear and return; the log of all this contains no credential."""

from collections.abc import Callable

from harness import Build, Probe, also_under_valgrind, expect, fails
from proxies import Microsocks, Tinyproxy
from servers import Peer, Servers, frame

#: reconnect=INITIAL_MS,MAX_MS,ATTEMPTS, each delay twice the one before.
QUICKLY = "10,40,0"


async def echo(peer: Peer) -> None:
    await peer.send(peer.answer())
    while True:
        opcode, payload = await peer.read_frame()
        await peer.send(frame(opcode, payload))
        if opcode == 8:
            return


def echoes(probe: Probe, seed: int) -> None:
    checksum = probe.ask(f"text 100 {seed}", "sent (.*)")[1]
    probe.expect(f"text 100 {checksum}")


def lost(probe: Probe, status: str, attempt: int, delay_ms: int) -> None:
    """Expects that the connection is lost, and the delay before the next attempt."""
    probe.expect(f"error {status} .*")
    probe.expect(f"lost 1006 attempt {attempt} in {delay_ms}")
    probe.expect(f"attempt {attempt}")


def after_attempts(probe: Probe, event: str) -> str:
    """The next line of this event, after any number of failed attempts."""
    known = ("error RT_ERROR_CONNECT ", "lost 1006 ", "attempt ")
    while not (line := probe.next()).startswith(f"{event} "):
        expect(line.startswith(known), f"received {line!r}")
    return line


@also_under_valgrind
def test_server_returns(make: Callable[..., Probe], servers: Servers) -> None:
    server = servers.stoppable(echo)
    with make(server.url, reconnect=QUICKLY, compression=False) as probe:
        probe.expect("open .*")
        echoes(probe, 1)
        server.stop()
        lost(probe, "RT_ERROR_CONNECTION_LOST", 1, 10)
        # Nobody listens: the delays grow up to the limit.
        for attempt, delay_ms in ((2, 20), (3, 40), (4, 40)):
            lost(probe, "RT_ERROR_CONNECT", attempt, delay_ms)
        server.start()
        after_attempts(probe, "open")
        echoes(probe, 2)
        probe.close()


def test_server_returns_under_tls(make: Callable[..., Probe], servers: Servers) -> None:
    """The connection is cut; then the server lacks its certificate; then it is as before."""
    tls = servers.tls()
    visits: list[int] = []

    async def script(peer: Peer) -> None:
        visits.append(1)
        await peer.send(peer.answer() + frame(1, b"%d" % len(visits)))
        if len(visits) == 3:
            await peer.send(frame(8, await peer.read_until_close()))

    url = servers.script(script, tls)
    with make(url, network_ca_file=tls.ca_file, reconnect=QUICKLY) as probe:
        for attempt in (1, 2):
            probe.expect("open .*")
            probe.expect("text 1 .*")
            lost(probe, "RT_ERROR_CONNECTION_LOST", attempt, attempt * 10)
        probe.expect("open .*")
        probe.expect("text 1 .*")
        probe.close()


def test_server_stays_silent(make: Callable[..., Probe], servers: Servers) -> None:
    """The server accepts and sends nothing: each attempt has its own open timeout."""
    visits: list[int] = []

    async def script(peer: Peer) -> None:
        visits.append(1)
        await (echo if len(visits) == 3 else Peer.read_to_end)(peer)

    url = servers.script(script)
    with make(url, reconnect=QUICKLY, open_timeout_ms=300, compression=False) as probe:
        lost(probe, "RT_ERROR_TIMEOUT", 1, 10)
        lost(probe, "RT_ERROR_TIMEOUT", 2, 20)
        probe.expect("open .*")
        echoes(probe, 1)
        probe.close()


def test_retry_after_is_respected(make: Callable[..., Probe], servers: Servers) -> None:
    """Retry-After overrides the backoff, also as a date relative to the response's Date."""
    date = "Date: Fri, 31 Dec 1999 23:59:5{} GMT\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n"
    answers = ["Retry-After: 1\r\n", date.format(8), date.format(9), "Retry-After: soon\r\n"]

    async def script(peer: Peer) -> None:
        if not answers:
            return await echo(peer)
        head = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n" + answers.pop(0) + "\r\n"
        await peer.send(head.encode())

    with make(servers.script(script), reconnect=QUICKLY, compression=False) as probe:
        for attempt, delay_ms in ((1, 1000), (2, 1000), (3, 40), (4, 40)):
            probe.expect(r"refused 503 \[Busy\] .*")
            lost(probe, "RT_ERROR_HTTP_STATUS", attempt, delay_ms)
        probe.expect("open .*")
        probe.close()


def test_attempts_are_limited(make: Callable[..., Probe], servers: Servers) -> None:
    server = servers.stoppable(echo)
    server.stop()
    with make(server.url, reconnect="10,40,2") as probe:
        lost(probe, "RT_ERROR_CONNECT", 1, 10)
        lost(probe, "RT_ERROR_CONNECT", 2, 20)
        fails(probe, "RT_ERROR_CONNECT")


def test_messages_wait_for_the_server(make: Callable[..., Probe], servers: Servers) -> None:
    """Messages sent while the server is away arrive in order, once it is back."""
    server = servers.stoppable(echo)
    with make(server.url, reconnect=QUICKLY, offline_queue=3, compression=False) as probe:
        probe.expect("open .*")
        server.stop()
        probe.expect("error RT_ERROR_CONNECTION_LOST .*")
        probe.expect("lost .*")
        checksums = []
        for seed in range(3):
            probe.tell(f"text 50 {seed}")
            checksums.append(after_attempts(probe, "sent").split()[1])
        server.start()
        after_attempts(probe, "open")
        for checksum in checksums:
            probe.expect(f"text 50 {checksum}")
        probe.close()


def test_closed_while_the_server_is_away(make: Callable[..., Probe], servers: Servers) -> None:
    server = servers.stoppable(echo)
    with make(server.url, reconnect="60000,60000,0") as probe:
        probe.expect("open .*")
        server.stop()
        probe.expect("error RT_ERROR_CONNECTION_LOST .*")
        probe.expect("lost 1006 attempt 1 in 60000")
        probe.ask("close 1000", "close 1000 unclean.*")
        probe.end()


def test_freed_while_the_server_is_away(make: Callable[..., Probe], servers: Servers) -> None:
    server = servers.stoppable(echo)
    with make(server.url, reconnect="60000,60000,0") as probe:
        probe.expect("open .*")
        server.stop()
        probe.expect("error RT_ERROR_CONNECTION_LOST .*")
        probe.expect("lost .*")
        probe.tell("free")
        probe.end()


def test_refusal_is_final(make: Callable[..., Probe], servers: Servers) -> None:
    """A server that forbids access is not asked again."""

    async def script(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    with make(servers.script(script), reconnect=QUICKLY) as probe:
        probe.expect("refused 403 .*")
        fails(probe, "RT_ERROR_HTTP_STATUS", text="403")


# The log


def test_log_is_discreet(build: Build, servers: Servers) -> None:
    """Neither the logs nor the events and error texts of all clients so far contain a credential:
    each credential of the tests contains this word."""
    secret = "s3cret"
    tls = servers.tls(asks_clients=True)
    certificate, key = tls.client(f"{secret}-key")
    common = {"log": 4, "network_ca_file": tls.ca_file, "reconnect": "1,1,1"}
    dead = f"http://ann:{secret}-dead@127.0.0.1:1"
    files = f"{certificate},{key},{secret}-wrong"
    url = servers.echo(tls).replace("://", f"://ann:{secret}-url@") + f"?token={secret}-query"
    with Tinyproxy(servers.folder, "ann", f"{secret}-http") as http:
        with Microsocks(servers.folder, "ann", f"{secret}-socks") as socks:
            for options in (
                {"client_certificate": f"{certificate},{key},{secret}-key"},
                {"client_certificate": files},
                {"proxy": http.url("ann", f"{secret}-http")},
                {"proxy": http.url("ann", f"{secret}-bad")},
                {"proxy": socks.url("ann", f"{secret}-socks")},
                {"proxy": socks.url("ann", f"{secret}-bad")},
                {"environment": {"https_proxy": dead}},
                {"authorization": f"Bearer {secret}-bearer"},
            ):
                run_to_its_end(build, url, {**common, **options})
    said = "".join(Probe.said)
    for sign in ("log 3 connecting to", "RT_ERROR_PROXY", "RT_ERROR_TLS", "is open", "attempt 1"):
        expect(sign in said, f"{sign!r} is not in the output of the clients")
    guilty = [line for line in Probe.said if secret in line]
    expect(not guilty, f"{len(guilty)} lines, the first: {guilty[:1]}")


def run_to_its_end(build: Build, url: str, options: dict[str, object]) -> None:
    with Probe(build, url, **options) as probe:  # type: ignore[arg-type]
        while not (line := probe.next()).startswith("destroyed"):
            if line.startswith("open"):
                probe.tell("close 1000")
