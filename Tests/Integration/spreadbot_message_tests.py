"""Messages of a Spreadbot connection, in each form; none of them comes twice."""

from collections.abc import Callable

from bot import QUICKLY, Bot, Message
from harness import Build, expect
from ladder_server import (
    LadderServer,
    Script,
    Socket,
    cut_socket,
    polled,
    silence,
    socket,
    status,
    stream,
)
from leg_gate import Leg
from streams import Exchange

ANY = r"RT_ERROR_\w+"
NO_PROBES: dict[str, object] = {**QUICKLY, "upgrade": "0,0"}
META = ["Sec-WebSocket-Protocol: ws+meta.nchan"]

Test = Callable[[Build, LadderServer], None]


def tells(bot: Bot, *wanted: tuple[str, bool, str, str]) -> None:
    """Expects these messages: id, whether the message has its own, event, data."""
    for one in wanted:
        message = bot.message()
        told = (message.id, message.had_id, message.event, message.data)
        expect(told == one, f"expected {one}, received {told}")


# By WebSocket


def test_frames_with_headers(build: Build, server: LadderServer) -> None:
    """Nchan's form: header lines, an empty line, and the message, which may be anything."""
    frames = [
        b"id: 1:0\n\nplain",
        b"id: 1:1\ncontent-type: text/plain\nevent: tick\n\nnamed",
        b'content-type: application/json\n\n{"data": 1}',
        b"id:1:2\nx: y\n\na\n\nb",
        b"id: 1:3\n\n",
        b"\nno header",
        b"no blank line",
        b"no header line\n\nrest",
    ]
    server.plan("/p", {Leg.WEBSOCKET: [socket(*frames, fields=META)]})
    with Bot(build, server.origin, "p", **NO_PROBES) as bot:
        bot.expect("transport 1", "open 1 0")
        tells(
            bot,
            ("1:0", True, "p", "plain"),
            ("1:1", True, "tick", "named"),
            ("1:1", False, "p", '{"data": 1}'),
            ("1:2", True, "p", "a"),
        )
        bot.expect("", "b")
        tells(bot, ("1:3", True, "p", ""), ("1:3", False, "p", "no header"))
        tells(bot, ("1:3", False, "p", "no blank line"), ("1:3", False, "p", "no header line"))
        bot.expect("", "rest")
        bot.end()
    offered = server.of("/p", Leg.WEBSOCKET)[0].headers["sec-websocket-protocol"]
    expect(offered.split(",")[0] == "ws+meta.nchan", f"offered {offered}")


JSON_FRAMES = [
    (b'{"id": "a", "event": "e", "data": "text"}', ("a", True, "e", "text")),
    (b' \n{"id": 12345678901, "data": "\\u00e9\\n"}', ("12345678901", True, "p", "é")),
    (b'{"id": 2, "data": { "b" : [1, 2.50, null] }}', ("2", True, "p", '{"b":[1,2.50,null]}')),
    (b'{"data": null}', ("2", False, "p", "null")),
    (b'{"id": "", "event": "", "data": true}', ("2", False, "p", "true")),
    (b'{"id": "a\\nb", "data": "x"}', ("2", False, "p", "x")),
    (b'{"id": 3.5, "event": 4, "data": ""}', ("2", False, "p", "")),
    (b'{"id": 4, "event": "e"}', ("2", False, "p", '{"id": 4, "event": "e"}')),
    (b'[{"data": 1}]', ("2", False, "p", '[{"data": 1}]')),
    (b'{"data": 1', ("2", False, "p", '{"data": 1')),
    (b"bare", ("2", False, "p", "bare")),
]


def test_frames_of_json(build: Build, server: LadderServer) -> None:
    """An object with data is a message; anything else is the text of one."""
    server.plan("/p", {Leg.WEBSOCKET: [socket(*(frame for frame, _ in JSON_FRAMES))]})
    with Bot(build, server.origin, "p", **NO_PROBES) as bot:
        bot.expect("transport 1", "open 1 0")
        for _, wanted in JSON_FRAMES:
            tells(bot, wanted)
            if wanted[3] == "é":
                bot.expect("")
        bot.end()


def test_frames_after_an_empty_subprotocol(build: Build, server: LadderServer) -> None:
    """An empty Sec-WebSocket-Protocol, Nchan's answer to an unknown offer, selects none."""
    fields = ["Sec-WebSocket-Protocol: "]
    frames = [b'{"id": 1, "data": "x"}', b"id: 2\n\ny"]
    server.plan("/p", {Leg.WEBSOCKET: [socket(*frames, fields=fields)]})
    with Bot(build, server.origin, "p", **NO_PROBES) as bot:
        bot.expect("transport 1", "open 1 0")
        tells(bot, ("1", True, "p", "x"), ("1", False, "p", "id: 2"))
        bot.expect("", "y")
        bot.end()


def test_frames_of_bytes(build: Build, server: LadderServer) -> None:
    """Binary frames have headers, too, and are not parsed as JSON."""

    def script(*payloads: bytes, fields: list[str]) -> Script:
        def run(exchange: Exchange) -> None:
            peer = Socket(exchange, *fields)
            for payload in payloads:
                peer.send(payload, 2)
            peer.serve()

        return run

    server.plan("/m", {Leg.WEBSOCKET: [script(b"id: 1\n\nx", fields=META)]})
    server.plan("/j", {Leg.WEBSOCKET: [script(b'{"data": 1}', fields=[])]})
    with Bot(build, server.origin, "m", **NO_PROBES) as bot:
        bot.expect("transport 1", "open 1 0")
        tells(bot, ("1", True, "m", "x"))
        bot.tell("establish j")
        bot.expect("open 1 0")
        tells(bot, ("", False, "j", '{"data": 1}'))
        bot.end()


# By the other legs


def test_events(build: Build, server: LadderServer) -> None:
    """An event's own type is reported, `message` becomes the path; the id persists."""
    body = (
        b"id: 1\ndata: a\n\nevent: tick\ndata: b\n\nevent: message\ndata: c\n\nid: 2\ndata: d\n\n"
    )
    server.plan("/p", {Leg.SSE: [stream(body, b": x\n\nid\ndata: e\n\n")]})
    with Bot(build, server.origin, "p", transports=2) as bot:
        bot.expect("transport 2", "open 2 0")
        tells(bot, ("1", True, "p", "a"), ("1", False, "tick", "b"), ("1", False, "p", "c"))
        tells(bot, ("2", True, "p", "d"), ("2", False, "p", "e"))
        bot.end()


def test_polls(build: Build, server: LadderServer) -> None:
    """The id comes in its own header or in both validators; without them it persists."""
    date = "Sat, 21 Nov 2026 10:00:00 GMT"
    scripts = [
        polled(b"a", "Last-Event-ID: 7"),
        polled(b"b", f"Last-Modified: {date}", "Etag: 3"),
        polled(b'{"data": 1}', kind="application/json"),
        silence,
    ]
    server.plan("/p", {Leg.POLL: scripts})
    with Bot(build, server.origin, "p", transports=3, poll_interval=10) as bot:
        bot.expect("transport 3", "open 3 0")
        tells(bot, ("7", True, "p", "a"), ("1795255200:3", True, "p", "b"))
        tells(bot, ("1795255200:3", False, "p", '{"data": 1}'))
        bot.end()
    ids = [one.headers.get("last-event-id") for one in server.of("/p", Leg.POLL)]
    expect(ids[:3] == [None, "7", "1795255200:3"], f"ids {ids}")


def test_polls_move_the_id_in_their_query(build: Build, server: LadderServer) -> None:
    """For servers that only look at the query."""
    scripts = [polled(b"%d" % number, f"Last-Event-ID: {number}") for number in (1, 2, 3)]
    server.plan("/p", {Leg.POLL: [*scripts, silence]})
    with Bot(build, server.origin, "p", transports=3, poll_interval=10, id_query="i") as bot:
        bot.expect("transport 3", "open 3 0")
        tells(bot, *((str(number), True, "p", str(number)) for number in (1, 2, 3)))
        bot.end()
    queries = [one.query for one in server.of("/p", Leg.POLL)]
    expect(queries[:3] == ["", "i=1", "i=2"], f"queries {queries}")


def test_polls_in_parts(build: Build, server: LadderServer) -> None:
    """The id is that of the last part."""
    parts = [b"a", b"b", b"c"]
    body = b"".join(b"--x/y\r\nContent-Type: text/plain\r\n\r\n%b\r\n" % one for one in parts)
    kind = "multipart/mixed; boundary=x/y"
    scripts = [polled(body + b"--x/y--\r\n", "Last-Event-ID: 3", kind=kind), silence]
    server.plan("/p", {Leg.POLL: scripts})
    with Bot(build, server.origin, "p", transports=3, poll_interval=10) as bot:
        bot.expect("transport 3", "open 3 0")
        tells(bot, ("", False, "p", "a"), ("", False, "p", "b"), ("3", True, "p", "c"))
        bot.end()


# One cursor (B7, B8)


def test_a_cursor_for_all_legs(build: Build, server: LadderServer) -> None:
    """Each leg starts after the last message of the leg before. A poll's validators are not sent
    after another leg has moved the cursor."""
    server.plan(
        "/p",
        {
            Leg.WEBSOCKET: [cut_socket(b'{"id": 1, "data": "a"}'), cut_socket()],
            Leg.SSE: [stream(b"id: 2\ndata: b\n\n", holds=False), stream(holds=False)],
            Leg.POLL: [polled(b"c", "Last-Event-ID: 3"), polled(b"d"), silence],
        },
    )
    with Bot(build, server.origin, "p", **NO_PROBES) as bot:
        bot.until("open 3 1", "error .*", "open .*", "transport .*")
        tells(bot, ("3", True, "p", "c"), ("3", False, "p", "d"))
        bot.end()
    ids = {
        leg: [one.headers.get("last-event-id") for one in server.of("/p", leg)]
        for leg in (Leg.WEBSOCKET, Leg.SSE, Leg.POLL)
    }
    expect(ids[Leg.WEBSOCKET][0] is None and set(ids[Leg.WEBSOCKET][1:]) == {"1"}, f"ids {ids}")
    expect(ids[Leg.SSE][0] == "1" and set(ids[Leg.SSE][1:]) == {"2"}, f"ids {ids}")
    expect(ids[Leg.POLL][:2] == ["2", "3"], f"ids {ids}")


def event(number: int, data: str = "") -> bytes:
    return f"id: {number}\ndata: {data or number}\n\n".encode()


def test_duplicates_are_dropped(build: Build, server: LadderServer) -> None:
    """If a server replays too much, its messages are dropped up to the first new one. A server that
    then starts its ids over is heard, and so is one that sends an old id in the middle of a leg."""
    first = b"".join(event(number) for number in range(1, 301))
    # All of the 256 ids that are remembered, then new ones.
    second = b"".join(event(number) for number in range(45, 303))
    third = event(302) + event(303) + event(1, "anew") + event(1, "anew")
    scripts = [stream(first, holds=False), stream(second, holds=False), stream(third)]
    server.plan("/p", {Leg.SSE: scripts})
    with Bot(build, server.origin, "p", transports=2, **QUICKLY) as bot:
        bot.until("message 1 1 p anew", "transport 2", "open 2 .*", rf"error {ANY} 2 \d+ \d+ 1")
        bot.expect("message 1 1 p anew")
        bot.end()
    told = [message.data for message in bot.messages]
    wanted = [*(str(number) for number in range(1, 304)), "anew"]
    expect(told == wanted, f"received {told}")


def test_messages_without_id_are_never_dropped(build: Build, server: LadderServer) -> None:
    sockets = [cut_socket(b'{"id":1,"data":1}', b"bare"), socket(b"bare")]
    server.plan("/p", {Leg.WEBSOCKET: sockets})
    with Bot(build, server.origin, "p", **NO_PROBES) as bot:
        bot.expect("transport 1", "open 1 0")
        tells(bot, ("1", True, "p", "1"), ("1", False, "p", "bare"))
        bot.expect(r"error RT_ERROR_CONNECTION_LOST 1 0 \d+ 1", "open 1 1")
        tells(bot, ("1", False, "p", "bare"))
        bot.end()


def test_a_deleted_channel_resets_the_id(build: Build, server: LadderServer) -> None:
    """The new channel starts where the application says."""
    scripts = [polled(b"a"), polled(b"b", "Last-Event-ID: 7"), status(410), polled(b"c"), silence]
    server.plan("/p", {Leg.POLL: scripts})
    with Bot(build, server.origin, "p", transports=3, poll_interval=10, id="4") as bot:
        bot.expect("transport 3", "open 3 1")
        tells(bot, ("4", False, "p", "a"), ("7", True, "p", "b"))
        bot.expect(r"error RT_ERROR_GONE 3 410 \d+ 0")
        tells(bot, ("", False, "p", "c"))
        bot.end()


def test_an_id_without_data_counts(build: Build, server: LadderServer) -> None:
    """It is used by the next event, and by the next request if no event comes."""
    first = stream(b"id: 1\n\ndata: a\n\nid: 2\n\n", holds=False)
    server.plan("/p", {Leg.SSE: [first, stream(b"data: b\n\n")]})
    with Bot(build, server.origin, "p", transports=2, **QUICKLY) as bot:
        bot.until("message 2 0 p b", "transport 2", "open .*", "error .*")
        bot.end()
    expect(bot.messages[0] == Message("1", True, "p", "a"), f"{bot.messages}")
    ids = [one.headers.get("last-event-id") for one in server.of("/p", Leg.SSE)]
    expect(ids == [None, "2"], f"ids {ids}")


def test_each_poll_sends_the_current_token(build: Build, server: LadderServer) -> None:
    """Each poll is a new request."""
    server.plan("/p", {Leg.POLL: [polled(b"a"), polled(b"b"), silence]})
    with Bot(build, server.origin, None, transports=3, poll_interval=10) as bot:
        bot.tell("tokens old")
        bot.tell("pause_at a")
        bot.tell("establish p")
        bot.expect("transport 3", "open 3 0", "message - 0 p a")
        while server.count("/p", Leg.POLL) < 2:
            bot.is_silent()
        bot.tell("tokens new")
        bot.tell("resume")
        bot.expect("message - 0 p b")
        while server.count("/p", Leg.POLL) < 3:
            bot.is_silent()
        bot.end()
    shown = [one.headers.get("authorization") for one in server.of("/p", Leg.POLL)]
    expect(shown == ["Bearer old", "Bearer old", "Bearer new"], f"shown {shown}")


def test_a_pause_holds_messages(build: Build, server: LadderServer) -> None:
    """On each leg, also a message that arrives during the pause."""
    server.plan("/1", {Leg.WEBSOCKET: [cut_socket(b"a"), socket(b"b")]})
    server.plan("/2", {Leg.SSE: [stream(b"data: a\n\n", holds=False), stream(b"data: b\n\n")]})
    server.plan("/3", {Leg.POLL: [polled(b"a"), polled(b"b"), silence]})
    for leg in (1, 2, 3):
        with Bot(build, server.origin, None, transports=leg, poll_interval=10, **QUICKLY) as bot:
            bot.tell("pause")
            bot.tell(f"establish {leg}")
            if leg != 3:
                bot.expect(f"transport {leg}", f"open {leg} 0")
            bot.is_silent()
            bot.tell("resume")
            bot.until(f"message .* {leg} b", "transport 3", "open .*", "error .* 1")
            bot.end()
        told = [message.data for message in bot.messages]
        expect(told == ["a", "b"], f"by leg {leg}: {told}")


def test_establish_replaces_the_path(build: Build, server: LadderServer) -> None:
    """The old connection ends without any report."""
    server.plan("/a", {Leg.WEBSOCKET: [socket(b'{"id": 5, "data": "a"}')]})
    server.plan("/b", {Leg.WEBSOCKET: [socket(b"b")]})
    with Bot(build, server.origin, "a", **NO_PROBES) as bot:
        bot.expect("transport 1", "open 1 0", "message 5 1 a a")
        bot.tell("establish b")
        bot.expect("open 1 0", "message - 0 b b")
        bot.tell("state")
        bot.expect("state 2 0 1 -")
        bot.end()
