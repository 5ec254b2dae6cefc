"""What a Spreadbot connection does after each way that a leg can end: the rows of B9."""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence

import pytest
from bot import QUICKLY, Bot
from harness import Build, Failed
from ladder_server import (
    LadderServer,
    Script,
    cut_socket,
    nothing,
    polled,
    reset,
    say,
    silence,
    socket,
    status,
    stream,
)
from leg_gate import Leg
from token_server import TokenServer

Plan = dict[Leg, Sequence[Script]]

#: Scripts with which each leg works.
GOOD: dict[Leg, Script] = {
    Leg.WEBSOCKET: socket(),
    Leg.SSE: stream(),
    Leg.POLL: polled(b"hello"),
}
LEGS = tuple(GOOD)
PASSING = (408, 425, 429, 500, 502, 503, 504)
UNFIT = (1002, 1003, 1007, 1009, 1010)
ANY = r"RT_ERROR_\w+"
DELAY = r"(?:1\d|20)"


@dataclasses.dataclass(frozen=True)
class Row:
    """One way that a leg can end.

    name: also the path.
    leg: the leg that ends; those above it answer 404.
    scripts: the leg's responses.
    lines: the events that follow, after its opening if it opens.
    follows: the leg in use afterwards, 0 for none.
    opens: whether the leg opens before it ends.
    is_last: whether no leg follows it.
    """

    name: str
    leg: Leg
    scripts: Sequence[Script]
    lines: Sequence[str]
    follows: int
    opens: bool = False
    is_last: bool = False

    @property
    def plan(self) -> Plan:
        plan: dict[Leg, Sequence[Script]] = {leg: [GOOD[leg]] for leg in LEGS if leg > self.leg}
        return {**plan, self.leg: self.scripts}


def rows_hold(build: Build, server: LadderServer, tokens: TokenServer, rows: list[Row]) -> None:
    """One client for all rows, with a path for each."""
    with contextlib.ExitStack() as stack:
        bots: dict[str, Bot] = {}
        for row in rows:
            server.plan(f"/{row.name}", row.plan)
            legs = ",".join(str(int(leg)) for leg in LEGS if leg <= row.leg or not row.is_last)
            if legs not in bots:
                bots[legs] = stack.enter_context(
                    Bot(
                        build,
                        server.origin,
                        None,
                        transports=legs,
                        # For the rows without an answer; all others answer earlier, even under
                        # load.
                        answer_timeout=2000,
                        upgrade="0,0",
                        **QUICKLY,
                        **tokens.options,
                    )  # fmt: skip
                )
            try:
                holds(row, bots[legs], server)
            except Failed as error:
                raise Failed(f"{row.name}: {error}") from None
        for bot in bots.values():
            bot.end()


def holds(row: Row, bot: Bot, server: LadderServer) -> None:
    path = f"/{row.name}"
    bot.tell(f"establish {path}")
    for leg in LEGS:
        if leg < row.leg:
            bot.expect(f"error RT_ERROR_HTTP_STATUS {leg} 404 0 0")
    if row.opens:
        bot.expect(f"transport {row.leg}", f"open {row.leg} 0")
        if row.leg is Leg.POLL:
            bot.message()
    bot.expect(*row.lines)
    if row.follows:
        if not row.opens or row.follows != row.leg:
            bot.expect(f"transport {row.follows}")
        bot.expect(f"open {row.follows} 0")
        bot.tell("disconnect")
    bot.until("transport 0")
    bot.expect("disconnected RT_OK" if row.follows else f"disconnected {ANY}")


def after(leg: Leg) -> int:
    return 0 if leg is Leg.POLL else leg + 1


# unsupported: the next leg at once


def unsupported_rows() -> list[Row]:
    rows: list[Row] = []

    def row(name: str, leg: Leg, script: Script, error: str, opens: bool = False) -> None:
        lines = [f"error {error} 0 0"]
        if leg is Leg.POLL:
            # Only the end is reported.
            lines = [f"fatal RT_ERROR_RECONNECTS_EXHAUSTED {error.partition(' ')[2]}"]
        rows.append(Row(f"{leg.name}-{name}", leg, [script], lines, after(leg), opens))

    refused = "RT_ERROR_HTTP_STATUS {} {}".format
    for leg in LEGS:
        numbers = [400, 402, 405, 406, 410, 418, 426, 451, 501, 505, 511]
        if leg is not Leg.POLL:
            # The last leg is refused by these, too.
            numbers += [403, 404]
        else:
            # It means that the ids of the cursor are gone, so the leg polls again.
            numbers.remove(410)
        if leg is Leg.WEBSOCKET:
            numbers += [200, 204]
        for number in numbers:
            row(str(number), leg, status(number), refused(int(leg), number))
        row("redirect", leg, status(302), f"RT_ERROR_REDIRECT {leg} (?:0|302)")
        row("nonsense", leg, say(b"nonsense\r\n\r\n"), f"{ANY} {leg} 0")
    accepted = b"HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    wrong = say(accepted + b"Sec-WebSocket-Accept: 3q2+7w==\r\n\r\n")
    row("accept", Leg.WEBSOCKET, wrong, "RT_ERROR_HANDSHAKE 1 0")
    row("silence", Leg.WEBSOCKET, silence, "RT_ERROR_TIMEOUT 1 0")
    row("close", Leg.WEBSOCKET, nothing, f"{ANY} 1 0")
    row("reset", Leg.WEBSOCKET, reset, f"{ANY} 1 0")
    row("half", Leg.WEBSOCKET, say(b"HTTP/1.1 101 Yes\r\n"), f"{ANY} 1 0")
    for code in UNFIT:
        row(f"closed-{code}", Leg.WEBSOCKET, socket(close=code), f"{ANY} 1 0", opens=True)
    row("204", Leg.SSE, status(204), "RT_ERROR_NO_CONTENT 2 204")
    row("type", Leg.SSE, polled(b"data: 1\n\n"), "RT_ERROR_CONTENT_TYPE 2 200")
    row("silence", Leg.SSE, silence, "RT_ERROR_TIMEOUT 2 0")
    return rows


# unreachable: the same leg again, counted


def unreachable_rows() -> list[Row]:
    rows: list[Row] = []
    for leg in LEGS:
        for number in PASSING:
            if leg is Leg.POLL and number in (408, 504):
                continue  # A held poll without a new message.
            error = f"error RT_ERROR_HTTP_STATUS {leg} {number} {DELAY} "
            scripts = [status(number), status(number), GOOD[leg]]
            lines = [error + "1", error + "2"]
            rows.append(Row(f"{leg.name}-{number}", leg, scripts, lines, leg))
        for name, fields, delay in (
            ("longer", "Retry-After: 1", "1000"),
            ("none", "Retry-After: soon", DELAY),
        ):
            lines = [f"error RT_ERROR_HTTP_STATUS {leg} 503 {delay} 1"]
            rows.append(
                Row(f"{leg.name}-503-{name}", leg, [status(503, fields), GOOD[leg]], lines, leg)
            )
        if leg is Leg.WEBSOCKET:
            continue
        for name, script in (("close", nothing), ("reset", reset)):
            lines = [f"error {ANY} {leg} 0 {DELAY} 1"]
            rows.append(Row(f"{leg.name}-{name}", leg, [script, GOOD[leg]], lines, leg))
    return rows


# unauthorized: fresh tokens, then the same leg again at once, not counted


def unauthorized_rows() -> list[Row]:
    rows: list[Row] = []
    for leg in LEGS:
        for number in (401, 407):
            lines = [f"error RT_ERROR_HTTP_STATUS {leg} {number} -1 0", "tokens .*"]
            rows.append(Row(f"{leg.name}-{number}", leg, [status(number), GOOD[leg]], lines, leg))
    for code in (3000, 4401):
        scripts = [socket(close=code), GOOD[Leg.WEBSOCKET]]
        lines = [f"error {ANY} 1 0 -1 0", "tokens .*"]
        name = f"WEBSOCKET-closed-{code}"
        rows.append(Row(name, Leg.WEBSOCKET, scripts, lines, 1, opens=True))
    return rows


# refused: the end


def refused_rows() -> list[Row]:
    rows: list[Row] = []
    for leg in LEGS:
        for number in (403, 404):
            lines = [f"fatal RT_ERROR_HTTP_STATUS {leg} {number}"]
            name = f"{leg.name}-last-{number}"
            rows.append(Row(name, leg, [status(number)], lines, 0, is_last=True))
    for code in (1008, 3003, 4403):
        lines = [f"fatal {ANY} 1 0"]
        scripts = [socket(close=code)]
        rows.append(Row(f"WEBSOCKET-closed-{code}", Leg.WEBSOCKET, scripts, lines, 0, opens=True))
    return rows


# dropped: the same leg again, counted


def dropped_rows() -> list[Row]:
    rows: list[Row] = []

    def row(name: str, leg: Leg, script: Script, error: str) -> None:
        lines = [f"error {error} {DELAY} 1"]
        rows.append(Row(f"{leg.name}-{name}", leg, [script, GOOD[leg]], lines, leg, opens=True))

    row("cut", Leg.WEBSOCKET, cut_socket(), "RT_ERROR_CONNECTION_LOST 1 0")
    for code in (1000, 1001, 1011, 1012, 1013, 1014, 3999, 4000, 4999):
        row(f"closed-{code}", Leg.WEBSOCKET, socket(close=code), f"{ANY} 1 0")
    row("end", Leg.SSE, stream(holds=False), f"{ANY} 2 \\d+")

    def reset_stream(exchange: object) -> None:
        stream(b": x\n\n", holds=False)(exchange)  # type: ignore[arg-type]
        reset(exchange)  # type: ignore[arg-type]

    row("reset", Leg.SSE, reset_stream, f"{ANY} 2 \\d+")
    for name, script, error in (
        ("close", nothing, f"{ANY} 3 0"),
        ("reset", reset, f"{ANY} 3 0"),
        ("503", status(503), "RT_ERROR_HTTP_STATUS 3 503"),
        ("half", say(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), f"{ANY} 3 \\d+"),
    ):
        scripts = [GOOD[Leg.POLL], script, GOOD[Leg.POLL]]
        lines = [f"error {error} {DELAY} 1"]
        rows.append(Row(f"POLL-{name}", Leg.POLL, scripts, lines, 3, opens=True))
    return rows


TABLES = [unsupported_rows, unreachable_rows, unauthorized_rows, refused_rows, dropped_rows]


@pytest.mark.parametrize("leg", LEGS, ids=[leg.name for leg in LEGS])
@pytest.mark.parametrize("table", TABLES, ids=[table.__name__ for table in TABLES])
def test_outcomes(
    build: Build,
    server: LadderServer,
    tokens: TokenServer,
    table: Callable[[], list[Row]],
    leg: Leg,
) -> None:
    rows_hold(build, server, tokens, [row for row in table() if row.leg is leg])
