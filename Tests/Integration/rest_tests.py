"""Requests with retries, against nginx (plain, and by HTTP/2 with TLS) and against a faulty server.
The log of all this contains no credential."""

import re
from collections.abc import Iterator

import pytest
from harness import Build, also_under_valgrind, expect
from nchan import Nchan
from rest_server import RESTServer

#: How long every request of these tests waits before its next attempt, in milliseconds.
QUICKLY = "delay=2"

#: Everything that was logged, to search for text that must never be there.
logged: list[str] = []


class Outcome:
    def __init__(self, line: str) -> None:
        found = re.fullmatch(r"done (\d+) (\w+) (\d+) (\d+) (\d+) (\d+) ?(.*)", line, re.S)
        expect(found is not None, f"said {line!r}")
        assert found is not None
        self.status = found[2]
        self.index, self.http, self.attempts, self.version, self.size = (
            int(found[group]) for group in (1, 3, 4, 5, 6)
        )
        self.body = found[7]


class Client:
    """Tests/Integration/rest.c."""

    def __init__(self, build: Build, base: str, valgrind: bool = False) -> None:
        self._build, self._base, self._valgrind = build, base, valgrind

    def __call__(self, method: str, path: str, *options: str) -> list[Outcome]:
        """Runs the requests; each must end exactly once, and the program with exit code 0."""
        program = self._build.helper("rest")
        arguments = [self._base, method, path, QUICKLY, *options]
        result = self._build.run(program, *arguments, valgrind=self._valgrind)
        logged.append(result.stderr)
        expect(result.returncode == 0, f"exit code {result.returncode}: {result.stdout}")
        *lines, end = result.stdout.removesuffix("\n").split("\ndone ")
        first, *rest = [*lines, *end.rsplit("\nended ", 1)]
        count = int(rest.pop())
        outcomes = [Outcome(first), *(Outcome("done " + line) for line in rest)]
        expect(len(outcomes) == count, f"{count} ended, and printed {len(outcomes)}")
        return outcomes


def check(outcome: Outcome, status: str, http: int, attempts: int) -> None:
    said = (outcome.status, outcome.http, outcome.attempts)
    expect(said == (status, http, attempts), f"expected {(status, http, attempts)}, not {said}")


@pytest.fixture
def server() -> Iterator[RESTServer]:
    with RESTServer() as running:
        yield running


@pytest.fixture
def client(build: Build, server: RESTServer, grind: bool) -> Client:
    return Client(build, server.url, grind)


def test_bad_answers_are_repeated(client: Client, server: RESTServer) -> None:
    for fault in ("reset", "short", "chunks"):
        check(client("GET", f"/{fault}/x/2")[0], "RT_OK", 200, 3)
        # If a response breaks off, its head is reported.
        http = 0 if fault == "reset" else 200
        check(client("GET", f"/{fault}/y/3")[0], "RT_ERROR_CONNECTION_LOST", http, 3)
        check(client("PUT", f"/{fault}/z/1", "body=b")[0], "RT_OK", 200, 2)
    check(client("GET", "/bad")[0], "RT_ERROR_PROTOCOL", 0, 3)
    check(client("GET", "/flaky/x/2")[0], "RT_OK", 200, 3)


def test_bad_answers_to_a_post_are_final(client: Client, server: RESTServer) -> None:
    for fault in ("reset", "short", "chunks"):
        outcome = client("POST", f"/{fault}/x/1", "body=b")[0]
        expect((outcome.status, outcome.attempts) == ("RT_ERROR_CONNECTION_LOST", 1), fault)
        check(client("POST", f"/{fault}/y/1", "body=b", "keys=1")[0], "RT_OK", 200, 2)
        check(client("POST", f"/{fault}/z/1", "body=b", "unsafe=1")[0], "RT_OK", 200, 2)
    keys = [seen.header("Idempotency-Key") for seen in server.seen if "/y/" in seen.target]
    expect(len(keys) == 6 and len(set(keys)) == 3 and all(keys), f"keys: {keys}")
    check(client("POST", "/flaky/a/1/500", "body=b")[0], "RT_ERROR_HTTP_STATUS", 500, 1)
    check(client("POST", "/flaky/b/1/429", "body=b")[0], "RT_OK", 200, 2)


@also_under_valgrind
def test_a_connection_found_dead_is_replaced(client: Client, server: RESTServer) -> None:
    first, second = client("PUT", "/echo", "path2=/dead/x", "count=2", "turns=1", "body=b")
    check(first, "RT_OK", 200, 1)
    check(second, "RT_OK", 200, 1)
    targets = [(seen.target, seen.connection) for seen in server.seen]
    # Once more in all, on another connection.
    expect(targets[:2] == [("/echo", 1), ("/dead/x", 1)], f"seen: {targets}")
    expect(len(targets) == 3 and targets[2][1] > 1, f"seen: {targets}")
    # A body from a callback has to be read again.
    outcomes = client("PUT", "/echo", "path2=/dead/y", "count=2", "turns=1", "source=1000")
    check(outcomes[1], "RT_OK", 200, 1)
    expect([len(seen.body) for seen in server.seen[-2:]] == [1000, 1000], "not sent whole")


@also_under_valgrind
def test_what_may_have_been_carried_out_is_not_sent_again(
    client: Client, server: RESTServer
) -> None:
    posts = ("POST", "/echo", "count=2", "turns=1", "body=b")
    check(client(*posts, "path2=/dead/x")[1], "RT_ERROR_CONNECTION_LOST", 0, 1)
    targets = [seen.target for seen in server.seen]
    expect(targets == ["/echo", "/dead/x"], f"seen: {targets}")
    # Unless the program allows it.
    check(client(*posts, "path2=/dead/y", "unsafe=1")[1], "RT_OK", 200, 1)
    targets = [seen.target for seen in server.seen][2:]
    expect(targets == ["/echo", "/dead/y", "/dead/y"], f"seen: {targets}")


def test_redirects_are_followed(client: Client, server: RESTServer) -> None:
    check(client("GET", "/redirect/19")[0], "RT_OK", 200, 1)
    check(client("GET", "/redirect/20")[0], "RT_ERROR_REDIRECT", 302, 1)
    check(client("GET", "/loop")[0], "RT_ERROR_REDIRECT", 302, 1)
    check(client("GET", "/nowhere")[0], "RT_ERROR_REDIRECT", 302, 1)
    check(client("GET", "/loop", "redirects=0")[0], "RT_ERROR_HTTP_STATUS", 302, 1)
    for status, method, body in ((302, "GET", ""), (303, "GET", ""), (307, "POST", "b")):
        server.seen.clear()
        check(client("POST", f"/redirect/0/{status}", "body=b")[0], "RT_OK", 200, 1)
        said = (server.seen[-1].method, server.seen[-1].body.decode())
        expect(said == (method, body), f"{status} leads to {said}")


def test_redirects_drop_credentials(client: Client, server: RESTServer) -> None:
    secrets = ("token=s3cret-token", "header=X-Api-Key:s3cret-key", "header=Cookie:a=s3cret-cookie")
    outcome = client("POST", "/away/302", *secrets, "header=X-Safe:seen", "safe=X-Safe", "body=b")[
        0
    ]
    check(outcome, "RT_OK", 200, 1)
    expect("s3cret" not in outcome.body and "X-Safe" in outcome.body, outcome.body)
    expect(server.seen[0].header("X-Api-Key") == "s3cret-key", "the first origin sees them")
    server.seen.clear()
    outcome = client("POST", "/away/307", *secrets, "body=b")[0]
    check(outcome, "RT_ERROR_REDIRECT", 307, 1)
    expect([seen.target for seen in server.seen] == ["/away/307"], "another origin got the body")


@also_under_valgrind
def test_a_misdirected_request_gets_its_own_connection(client: Client, server: RESTServer) -> None:
    check(client("POST", "/misdirected/x", "body=b")[0], "RT_OK", 200, 1)
    expect([seen.connection for seen in server.seen] == [1, 2], "not on a new connection")


@also_under_valgrind
def test_ordered_requests_keep_their_order(client: Client, server: RESTServer) -> None:
    outcomes = client("POST", "/flaky/x/2", "path2=/echo", "count=30", "body=b")
    expect([outcome.index for outcome in outcomes] == list(range(30)), "out of order")
    # Each attempt that follows a failure makes a connection; the others use the last one.
    expect(outcomes[0].attempts == 3 and server.connections == 3, f"{server.connections}")


@also_under_valgrind
def test_bodies_in_both_directions(client: Client, server: RESTServer) -> None:
    outcome = client("PUT", "/flaky/x/1", "source=1000000")[0]
    check(outcome, "RT_OK", 200, 2)
    expect(len(server.seen[-1].body) == 1_000_000, "the body is not whole")
    for stream in ("0", "1"):
        outcomes = client("GET", "/bytes/1000000", f"stream={stream}", "count=4")
        expect([outcome.size for outcome in outcomes] == [1_000_000] * 4, "not whole")


def test_timeouts(client: Client, server: RESTServer) -> None:
    # Far above what a step needs, even under valgrind; requests that are never answered time out.
    for fault in ("silent", "headless"):
        options = ("timeout=700", "attempts=1")
        check(client("GET", f"/{fault}/x/9", *options)[0], "RT_ERROR_TIMEOUT", 0, 1)
    options = ("timeout=0", "deadline=700")
    check(client("GET", "/silent/z/9", *options)[0], "RT_ERROR_DEADLINE", 0, 1)
    outcomes = client("GET", "/silent/w/1", "timeout=700")
    check(outcomes[0], "RT_OK", 200, 2)


def test_nginx_plain(build: Build, nchan: Nchan) -> None:
    client = Client(build, nchan.url("", "http"))
    check(client("GET", "/rest/moved")[0], "RT_OK", 200, 1)
    check(client("GET", "/stop")[0], "RT_OK", 204, 1)
    check(client("GET", "/no/such")[0], "RT_ERROR_HTTP_STATUS", 404, 1)
    check(client("HEAD", "/rest/large")[0], "RT_OK", 200, 1)
    outcomes = client("GET", "/rest/who", "count=60")
    connections = {outcome.body for outcome in outcomes}
    expect(len(connections) <= 6, f"{len(connections)} connections for 60 requests")
    expect(all(outcome.version == 11 for outcome in outcomes), "not HTTP/1.1")


def test_nginx_by_http2(build: Build, nchan: Nchan) -> None:
    client = Client(build, nchan.url("", "https"))
    ca = f"ca={nchan.ca_file}"
    outcomes = client("GET", "/rest/who", "count=60", ca)
    expect(all(outcome.version == 20 for outcome in outcomes), "not HTTP/2")
    connections = {outcome.body for outcome in outcomes}
    expect(len(connections) == 1, f"{len(connections)} connections for 60 streams")
    check(client("GET", "/rest/moved", ca)[0], "RT_OK", 200, 1)
    check(client("POST", "/pub/rest", "source=100000", ca)[0], "RT_OK", 202, 1)
    expect(client("GET", "/rest/who", "http2=0", ca)[0].version == 11, "not HTTP/1.1")
    check(client("GET", "/rest/who")[0], "RT_ERROR_TLS", 0, 3)


def test_nginx_compresses(build: Build, nchan: Nchan) -> None:
    for scheme in ("http", "https"):
        client = Client(build, nchan.url("", scheme))
        ca = f"ca={nchan.ca_file}"
        for path in ("/rest/large", "/rest/brotli"):
            plain = client("GET", path, "compression=0", ca)[0]
            coded = client("GET", path, ca)[0]
            expect(plain.size == coded.size > 1000, f"{plain.size} and {coded.size} bytes")
            expect(plain.body == coded.body, "not decoded")
    codings = (nchan.folder / "coding.log").read_text()
    expect("/rest/large gzip" in codings or "/rest/large br" in codings, "nothing was compressed")
    expect("/rest/brotli br" in codings, "br was not taken")


def test_example_program(build: Build) -> None:
    with RESTServer() as server:
        program = build.example("request")
        result = build.run(program, "GET", server.url + "/flaky/x/1", valgrind=True)
        expect(result.returncode == 0 and '"GET"' in result.stdout, result.stderr)
        result = build.run(program, "POST", server.url + "/echo", '{"a":1}')
        expect(result.returncode == 0 and "application/json" in result.stdout, result.stderr)
        result = build.run(program, "GET", server.url + "/status/404")
        expect(result.returncode == 1 and "RT_ERROR_HTTP_STATUS" in result.stderr, result.stderr)


def test_the_log_is_discreet(build: Build) -> None:
    """Every kind of credential, with every kind of end."""
    with RESTServer() as server:
        place = server.url.replace("http://", "http://s3cret-user:s3cret-password@")
        client = Client(build, place)
        everything = (
            "token=s3cret-token",
            "header=Cookie:a=s3cret-cookie",
            "header=X-Api-Key:s3cret-key",
            "query=s3cret-query",
            "body=s3cret-body",
            "timeout=300",
        )
        for path in ("/echo", "/flaky/a/1", "/status/404", "/token", "/away", "/redirect/2/307"):
            client("PUT", path, *everything)
            client("PUT", path, *everything[1:])
        for path in ("/reset/a/9", "/short/b/9", "/bad", "/loop", "/silent/c/9"):
            client("PUT", path, *everything, "attempts=2")
        expect(any("s3cret-query" in seen.target for seen in server.seen), "no query was sent")
        expect(any("s3cret" in seen.header("Authorization") for seen in server.seen), "no token")
    text = "".join(logged)
    expect(text.count("log 4 REST") > 20, "the log is empty")
    found = next((line for line in text.splitlines() if "s3cret" in line), "")
    expect(not found, f"the log has a credential: {found}")
