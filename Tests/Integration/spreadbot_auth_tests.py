"""Tokens of a Spreadbot connection: refreshed once for all requests, never used twice, never
logged."""

import queue
from collections.abc import Callable

from bot import QUICKLY, SECRET, Bot
from harness import PATIENCE_S, Build, expect
from ladder_server import LadderServer, Script, Socket, polled, socket, status, stream
from leg_gate import Leg
from nchan import free_port
from streams import Exchange
from token_server import TokenServer, say

ANY = r"RT_ERROR_\w+"
DELAY = r"(?:1\d|20)"
NO_PROBES: dict[str, object] = {**QUICKLY, "upgrade": "0,0"}
REFUSED = "error RT_ERROR_HTTP_STATUS 1 401 -1 0"

Test = Callable[[Build, LadderServer, TokenServer], None]


def guarded(tokens: TokenServer, script: Script, refusal: int = 401) -> Script:
    """Runs the script for requests with the current token; refuses all others."""

    def guard(exchange: Exchange) -> None:
        if exchange.headers.get("authorization") == f"Bearer {tokens.access}" and tokens.holds:
            script(exchange)
        else:
            status(refusal)(exchange)

    return guard


def fatal(bot: Bot, *patterns: str, ended: str = "RT_ERROR_AUTH") -> None:
    bot.expect(*patterns, "transport 0", f"disconnected {ended}")


# What the token server receives (B4)


def test_bytes_of_a_refresh(build: Build, server: LadderServer, tokens: TokenServer) -> None:
    """The credentials unchanged, the token encoded as in a form (RFC 6749 §6)."""
    server.plan("/", {Leg.WEBSOCKET: [status(401), socket()]})
    with Bot(build, server.origin, **NO_PROBES, **tokens.options) as bot:
        bot.expect(REFUSED, f"tokens {SECRET}-a1 {SECRET}-r1.*", "transport 1", "open 1 0")
        bot.end()
    request = tokens.request()
    expect(request.method == "POST" and request.target == "/token", request.target)
    body = f"grant_type=refresh_token&refresh_token={SECRET}-r0%26%2B%2F%3D%25".encode()
    expect(request.body == body, f"body {request.body!r}")
    wanted = {
        "authorization": f"Basic {tokens.basic}",
        "content-type": "application/x-www-form-urlencoded",
        "accept": "application/json",
        "content-length": str(len(body)),
    }
    for name, value in wanted.items():
        expect(request.headers.get(name) == value, f"{name}: {request.headers.get(name)}")
    shown = [one.headers.get("authorization") for one in server.of("/", Leg.WEBSOCKET)]
    expect(shown == [f"Bearer {SECRET}-a0", f"Bearer {SECRET}-a1"], f"shown {shown}")


def test_tokens_are_reported_first(build: Build, server: LadderServer, tokens: TokenServer) -> None:
    """On each leg, before they are used; and each refresh uses the next refresh token."""
    legs: list[tuple[Leg, Script]] = [
        (Leg.WEBSOCKET, socket()),
        (Leg.SSE, stream()),
        (Leg.POLL, polled(b"one")),
    ]
    for number, (leg, script) in enumerate(legs, 1):
        server.plan("/", {leg: [guarded(tokens, script)]})
        with Bot(build, server.origin, transports=int(leg), **NO_PROBES, **tokens.options) as bot:
            bot.expect(f"transport {leg}", f"open {leg} 0")
            bot.tell("disconnect")
            bot.until("disconnected RT_OK", "transport 0")
            tokens.expire()
            bot.tell("establish ")
            bot.until(f"error RT_ERROR_HTTP_STATUS {leg} 401 -1 0")
            bot.expect(f"tokens {SECRET}-a{number} {SECRET}-r{number}.*")
            bot.expect(f"transport {leg}", f"open {leg} 0")
            bot.end()


def test_refreshes_may_leave_the_refresh_token(
    build: Build, server: LadderServer, tokens: TokenServer
) -> None:
    """RFC 6749 §6: the server may issue a new refresh token; otherwise the old one stays valid."""
    tokens.plan(lambda exchange: say(exchange, "200 OK", {"access_token": f"{SECRET}-other"}))
    server.plan("/", {Leg.WEBSOCKET: [status(401), socket()]})
    with Bot(build, server.origin, **NO_PROBES, **tokens.options) as bot:
        bot.expect(REFUSED, rf"tokens {SECRET}-other {SECRET}-r0.*", "transport 1", "open 1 0")
        bot.end()


def test_refusals_are_fatal(build: Build, server: LadderServer, tokens: TokenServer) -> None:
    """Any response without a token is fatal. Afterwards the application can set tokens."""
    invalid = {"error": "invalid_grant", "error_description": "it has ended"}

    def answer(status: str, value: object) -> Script:
        return lambda exchange: say(exchange, status, value)

    def text(exchange: Exchange) -> None:
        exchange.begin("Content-Length: 3")
        exchange.send(b"yes")

    refusals: list[Script] = [
        answer("400 Bad Request", invalid),
        answer("401 Unauthorized", {"error": "invalid_client"}),
        answer("403 Forbidden", {}),
        answer("200 OK", {"refresh_token": "x"}),
        answer("200 OK", {"access_token": ""}),
        answer("200 OK", {"access_token": "x", "token_type": "mac"}),
        answer("200 OK", {"access_token": "a\nb"}),
        answer("200 OK", ["access_token"]),
        text,
        status(204),
    ]
    server.plan("/", {Leg.WEBSOCKET: [status(401)]})
    server.plan("/good", {Leg.WEBSOCKET: [socket()]})
    with Bot(build, server.origin, None, **NO_PROBES, **tokens.options) as bot:
        for refusal in refusals:
            bot.tell(f"tokens {tokens.pair}")
            tokens.plan(refusal)
            bot.tell("establish ")
            fatal(bot, REFUSED, r"fatal RT_ERROR_AUTH 1 \d+|fatal RT_ERROR_AUTH 0 0")
        # The server has refused its refresh token, so it is not sent again.
        bot.tell("establish ")
        fatal(bot, "fatal RT_ERROR_AUTH 1 401")
        bot.tell(f"tokens {SECRET}-mine")
        bot.tell("establish good")
        bot.expect("transport 1", "open 1 0")
        bot.end()
        said = "".join(bot.log)
    expect('"invalid_grant": "it has ended"' in said, "the server's reason is not reported")
    expect(len(tokens.bodies) == len(refusals), f"{len(tokens.bodies)} requests")


def test_redirects_are_not_followed(
    build: Build, server: LadderServer, tokens: TokenServer
) -> None:
    """The refresh token is not sent anywhere else."""
    server.plan("/", {Leg.WEBSOCKET: [status(401)]})
    tokens.plan(status(307, f"Location: {server.url('/elsewhere')}"))
    with Bot(build, server.origin, **NO_PROBES, **tokens.options) as bot:
        fatal(bot, REFUSED, r"fatal RT_ERROR_AUTH \d \d+")
        bot.end()
    expect(server.count("/elsewhere", Leg.POST) == 0, "it was followed")


def test_token_server_fails_for_a_while(
    build: Build, server: LadderServer, tokens: TokenServer
) -> None:
    """Tokens are kept, and the leg is retried, which counts. The server may already have used up
    the refresh token, so it is sent again only after the next refusal."""
    server.plan("/", {Leg.WEBSOCKET: [status(401)] * 4 + [socket()]})
    tokens.plan(lambda exchange: None, Exchange.reset, status(500))
    with Bot(build, server.origin, **NO_PROBES, **tokens.options) as bot:
        for attempt in (1, 2, 3):
            bot.expect(REFUSED, f"error {ANY} 1 0 {DELAY} {attempt}")
        bot.expect(REFUSED, f"tokens {SECRET}-a1 .*", "transport 1", "open 1 0")
        bot.end()
    expect(len(tokens.bodies) == 4, f"{len(tokens.bodies)} requests")


def test_token_server_says_when(build: Build, server: LadderServer, tokens: TokenServer) -> None:
    """After a refusal that did nothing, the same request is sent again."""
    server.plan("/", {Leg.WEBSOCKET: [status(401), socket()]})
    tokens.plan(status(503, "Retry-After: 0"), status(429), status(408))
    with Bot(build, server.origin, **NO_PROBES, **tokens.options) as bot:
        bot.until("transport 1", "error .*", "tokens .*")
        bot.expect("open 1 0")
        bot.end()
    expect(len(set(tokens.bodies)) == 1, "it was not the same request")


def test_token_server_is_unreachable(
    build: Build, server: LadderServer, tokens: TokenServer
) -> None:
    """Treated as if the server itself were unreachable."""
    server.plan("/", {Leg.WEBSOCKET: [status(401)]})
    options = {**NO_PROBES, "auth": f"http://127.0.0.1:{free_port()}/token,{tokens.basic}"}
    with Bot(
        build, server.origin, transports=1, max_reconnects=0, tokens=tokens.pair, **options
    ) as bot:
        bot.expect(REFUSED)
        fatal(
            bot,
            "fatal RT_ERROR_RECONNECTS_EXHAUSTED 1 0",
            ended="RT_ERROR_RECONNECTS_EXHAUSTED",
        )
        bot.end()


# Refusals, and when they are final


def test_new_tokens_are_refused(build: Build, server: LadderServer, tokens: TokenServer) -> None:
    for path, script, told in (
        ("/401", status(401), "1 401"),
        ("/4401", socket(close=4401), "1 0"),
        ("/3000", socket(close=3000), "1 0"),
    ):
        server.plan(path, {Leg.WEBSOCKET: [script]})
        with Bot(build, server.origin, path, **NO_PROBES, **tokens.options) as bot:
            bot.until("tokens .*", "transport 1", "open 1 0", f"error {ANY} {told} -1 0")
            bot.until(f"fatal RT_ERROR_AUTH {told}", "transport 1", "open 1 0")
            fatal(bot)
            bot.end()
        expect(server.count(path, Leg.WEBSOCKET) == 2, "asked again and again")


def test_nothing_to_refresh_with(build: Build, server: LadderServer, tokens: TokenServer) -> None:
    server.plan("/", {Leg.SSE: [status(401)]})
    no_server: dict[str, object] = {"tokens": tokens.pair}
    no_token: dict[str, object] = {**tokens.options, "tokens": f"{tokens.access},"}
    for options in (no_server, no_token):
        with Bot(build, server.origin, transports=2, **NO_PROBES, **options) as bot:
            fatal(bot, "fatal RT_ERROR_AUTH 2 401")
            bot.end()
    expect(not tokens.bodies, "the token server was asked")


def test_tokens_of_the_application(build: Build, server: LadderServer, tokens: TokenServer) -> None:
    """They are used from the next attempt on; requests refused with older tokens are repeated."""
    asked: queue.Queue[Exchange] = queue.Queue()
    told: queue.Queue[None] = queue.Queue()

    def refuse_late(exchange: Exchange) -> None:
        asked.put(exchange)
        told.get(timeout=PATIENCE_S)
        status(401)(exchange)

    server.plan("/", {Leg.SSE: [refuse_late, stream()]})
    with Bot(build, server.origin, transports=2, **NO_PROBES, **tokens.options) as bot:
        asked.get(timeout=PATIENCE_S)
        bot.tell(f"tokens {SECRET}-mine,{SECRET}-mine-too")
        bot.is_silent()
        told.put(None)
        bot.expect("error RT_ERROR_HTTP_STATUS 2 401 0 0", "transport 2", "open 2 0")
        bot.end()
    shown = server.of("/", Leg.SSE)[1].headers["authorization"]
    expect(shown == f"Bearer {SECRET}-mine", shown)
    expect(not tokens.bodies, "the token server was asked")


def test_tokens_that_end_soon(build: Build, server: LadderServer, tokens: TokenServer) -> None:
    """Near the end of their life they are refreshed before an attempt, so none is refused."""

    def stand(exchange: Exchange) -> None:
        exchange.begin()
        exchange.connection.settimeout(0.6)
        exchange.hold()

    tokens.plan(lambda exchange: tokens.give(exchange, expires_in=1))
    server.plan("/", {Leg.SSE: [status(401), stand, stream()]})
    with Bot(build, server.origin, transports=2, **NO_PROBES, **tokens.options) as bot:
        bot.expect("error RT_ERROR_HTTP_STATUS 2 401 -1 0", f"tokens {SECRET}-a1 .*")
        bot.expect("transport 2", "open 2 0", rf"error {ANY} 2 \d+ {DELAY} 1")
        bot.expect(f"tokens {SECRET}-a2 .*", "open 2 0")
        bot.end()
    expect(tokens.refreshes == 2, f"{tokens.refreshes} refreshes")


def test_tokens_in_the_query(build: Build, server: LadderServer, tokens: TokenServer) -> None:
    """The token and the id are in the query and in the headers."""
    server.plan("/", {Leg.SSE: [stream(b"id: 7/8\ndata: x\n\n", holds=False), stream()]})
    with Bot(
        build, server.origin, "?a=b", token_query="t", id_query="i", **NO_PROBES, **tokens.options
    ) as bot:
        bot.until("open 2 1", "error .*", "transport 2", "open 2 0")
        bot.send("text")
        bot.until(r"sent 1 .* 404")
        bot.end()
    websocket, first, second, post = [exchange.target for _, exchange in server.seen]
    expect(websocket == first == post == f"/?a=b&t={SECRET}-a0", f"{websocket} {first} {post}")
    expect(second == f"/?a=b&t={SECRET}-a0&i=7%2F8", second)


def test_tokens_in_requests(build: Build, server: LadderServer, tokens: TokenServer) -> None:
    """The token is in the query; a repeated request has the new one."""
    server.plan("/", {Leg.SSE: [stream()], Leg.POST: [guarded(tokens, status(202))]})
    server.plan("/one", {Leg.POLL: [polled(b"one")]})
    with Bot(build, server.origin, transports=2, token_query="t", **tokens.options) as bot:
        bot.expect("transport 2", "open 2 0")
        tokens.expire()
        bot.send("text")
        bot.expect(f"tokens {SECRET}-a1 .*", "sent 1 RT_OK 202")
        bot.tell("request GET one")
        bot.expect("done RT_OK 200 one")
    shown = [exchange.query for _, exchange in server.seen]
    expect(shown == [f"t={SECRET}-a{n}" for n in (0, 0, 1, 1)], f"{shown}")


# One refresh for all (B5, B16)


def test_one_refresh_for_all(build: Build, server: LadderServer, tokens: TokenServer) -> None:
    """A leg, a send and the user's requests are refused, and wait for the same tokens."""
    for path in ("/one", "/two"):
        server.plan(path, {Leg.POLL: [guarded(tokens, polled(path.encode()))]})
        server.plan(path, {Leg.POST: [guarded(tokens, polled(b"posted"))]})
    legs: dict[Leg, list[Script]] = {Leg.SSE: [guarded(tokens, stream())]}
    server.plan("/", {**legs, Leg.POST: [guarded(tokens, status(202))]})
    tokens.expire()
    refused: queue.Queue[Exchange] = queue.Queue()

    def give_late(exchange: Exchange) -> None:
        refused.put(exchange)
        # Now all of them are refused and waiting.
        while len(server.seen) < 5:
            expect(not exchange.has_gone(), "it was given up")
        tokens.give(exchange)

    tokens.plan(give_late)
    with Bot(build, server.origin, None, transports=2, **NO_PROBES, **tokens.options) as bot:
        for line in ("establish ", "text hello", "request GET one", "request GET two"):
            bot.tell(line)
        bot.tell("request POST two {}")
        # Once the tokens are there, the leg waits for nothing.
        lines = {bot.next().replace(" 401 0 0", " 401 -1 0") for _ in range(9)}
        bot.end()
    wanted = {
        "numbered 1", "error RT_ERROR_HTTP_STATUS 2 401 -1 0", "done RT_OK 200 /one",
        f"tokens {tokens.access} {tokens.refresh}", "transport 2", "open 2 0", "sent 1 RT_OK 202",
        "done RT_OK 200 /two", "done RT_OK 200 posted"}  # fmt: skip
    expect(lines == wanted, f"received {lines ^ wanted}")
    expect(tokens.refreshes == 1, f"{tokens.refreshes} refreshes")
    keys = [one.headers.get("idempotency-key") for one in server.of("/two", Leg.POST)]
    expect(len(keys) == 2 and keys[0] is not None and keys[0] == keys[1], f"keys {keys}")


def test_older_tokens_need_no_refresh(
    build: Build, server: LadderServer, tokens: TokenServer
) -> None:
    """A request that was refused with older tokens is repeated with the current ones."""
    late: queue.Queue[Exchange] = queue.Queue()
    free: queue.Queue[None] = queue.Queue()

    def refuse_late(exchange: Exchange) -> None:
        late.put(exchange)
        free.get(timeout=PATIENCE_S)
        status(401)(exchange)

    server.plan("/late", {Leg.POLL: [refuse_late, guarded(tokens, polled(b"late"))]})
    server.plan("/", {Leg.SSE: [status(401), guarded(tokens, stream())]})
    with Bot(build, server.origin, None, transports=2, **NO_PROBES, **tokens.options) as bot:
        bot.tell("request GET late")
        late.get(timeout=PATIENCE_S)
        bot.tell("establish ")
        bot.expect("error RT_ERROR_HTTP_STATUS 2 401 -1 0", "tokens .*", "transport 2", "open 2 0")
        free.put(None)
        bot.expect("done RT_OK 200 late")
        bot.end()
    expect(tokens.refreshes == 1, f"{tokens.refreshes} refreshes")


def test_requests_are_refused_twice(
    build: Build, server: LadderServer, tokens: TokenServer
) -> None:
    """That is final for the request, and does not affect the connection's leg."""
    server.plan("/no", {Leg.POLL: [status(401)]})
    server.plan("/", {Leg.SSE: [stream()]})
    with Bot(build, server.origin, transports=2, **NO_PROBES, **tokens.options) as bot:
        bot.expect("transport 2", "open 2 0")
        bot.tell("request GET no")
        bot.expect(f"tokens {SECRET}-a1 .*", "done RT_ERROR_HTTP_STATUS 401 .*")
        bot.is_silent()
        bot.end()
    expect(server.count("/no", Leg.POLL) == 2, "not twice")


def test_requests_wait_in_vain(build: Build, server: LadderServer, tokens: TokenServer) -> None:
    """If the refresh is refused, they end, and so does the connection."""
    server.plan("/no", {Leg.POLL: [status(401)]})
    server.plan("/", {Leg.SSE: [stream()]})
    tokens.plan(lambda exchange: say(exchange, "400 Bad Request", {"error": "invalid_grant"}))
    with Bot(build, server.origin, transports=2, **NO_PROBES, **tokens.options) as bot:
        bot.expect("transport 2", "open 2 0")
        bot.tell("request GET no")
        lines = {bot.next() for _ in range(4)}
        bot.end()
    wanted = {
        "fatal RT_ERROR_AUTH 0 0",
        "transport 0",
        "disconnected RT_ERROR_AUTH",
        "done RT_ERROR_AUTH 401 ",
    }
    expect(lines == wanted, f"received {lines}")


# Returning to the WebSocket


def test_refused_again_after_an_upgrade(
    build: Build, server: LadderServer, tokens: TokenServer
) -> None:
    """Tokens that were new at the lower leg, and expired meanwhile, are refreshed again."""
    sockets = [status(404), socket(), status(401), socket(b"two")]
    events = [status(401), stream(b"id: 1\ndata: one\n\n")]
    server.plan("/", {Leg.WEBSOCKET: sockets, Leg.SSE: events})
    with Bot(build, server.origin, upgrade="100,100", **tokens.options) as bot:
        bot.expect("error RT_ERROR_HTTP_STATUS 1 404 0 0")
        bot.expect("error RT_ERROR_HTTP_STATUS 2 401 -1 0", f"tokens {SECRET}-a1 .*")
        bot.expect("transport 2", "open 2 0", "message 1 1 - one")
        bot.expect(REFUSED, f"tokens {SECRET}-a2 .*", "transport 1", "open 1 1")
        bot.expect("message 1 0 - two")
        bot.end()


def test_a_probe_is_refused(build: Build, server: LadderServer, tokens: TokenServer) -> None:
    """The lower leg continues although its token has expired; the WebSocket gets a new one."""

    def serve(exchange: Exchange) -> None:
        Socket(exchange).serve()

    server.plan(
        "/",
        {
            Leg.WEBSOCKET: [status(404), guarded(tokens, serve)],
            Leg.SSE: [guarded(tokens, stream(b"id: 1\ndata: one\n\n"))],
        },
    )
    with Bot(build, server.origin, upgrade="50,50", **tokens.options) as bot:
        bot.expect("error RT_ERROR_HTTP_STATUS 1 404 0 0", "transport 2", "open 2 0")
        tokens.expire()
        bot.expect("message 1 1 - one", f"tokens {SECRET}-a1 .*", "transport 1", "open 1 1")
        bot.end()
    expect(server.count("/", Leg.SSE) == 1, "the lower leg was restarted")
