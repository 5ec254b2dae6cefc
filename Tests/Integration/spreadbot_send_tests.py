"""The sends of a Spreadbot connection: frames and requests in one order, each end reported once."""

import queue
import random
from collections.abc import Callable

from bot import QUICKLY, SECRET, Bot
from harness import PATIENCE_S, Build, expect
from inbox import Inbox
from ladder_server import (
    LadderServer,
    Script,
    Socket,
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

Test = Callable[[Build, LadderServer], None]


# By frames and by requests (B14)


def test_frames_are_confirmed(build: Build, server: LadderServer) -> None:
    inbox = Inbox()
    server.plan("/", {Leg.WEBSOCKET: [inbox.socket]})
    with Bot(build, server.origin, **NO_PROBES) as bot:
        bot.expect("transport 1", "open 1 0")
        for number in range(1, 6):
            expect(bot.send(f"{number}", "binary" if number == 3 else "text") == number, "number")
            bot.expect(f"sent {number} RT_OK 0")
        bot.end()
    bot.has_logged("sent text:")
    expect(inbox.texts == list("12345"), f"received {inbox.texts}")
    expect(server.count("/", Leg.POST) == 0, "posted")


def test_requests_where_there_is_no_websocket(build: Build, server: LadderServer) -> None:
    """On each other leg, and while none is open. The body is sent unchanged, with a key."""
    inbox = Inbox()
    server.plan("/2", {Leg.SSE: [stream()], Leg.POST: [inbox.post]})
    server.plan("/3", {Leg.POLL: [silence], Leg.POST: [inbox.post]})
    for leg in (2, 3):
        tokens = f"{SECRET}-a,"
        with Bot(build, server.origin, str(leg), transports=leg, tokens=tokens) as bot:
            if leg == 2:
                bot.expect("transport 2", "open 2 0")
            bot.send("é 1")
            bot.expect("sent 1 RT_OK 202")
            bot.send("2", "binary")
            bot.expect("sent 2 RT_OK 202")
            bot.end()
        first, second = server.of(f"/{leg}", Leg.POST)
        expect(first.body == "é 1".encode() and second.body == b"2", "another body")
        types = [one.headers["content-type"] for one in (first, second)]
        expect(types == ["text/plain; charset=utf-8", "application/octet-stream"], f"{types}")
        keys = [one.headers["idempotency-key"] for one in (first, second)]
        expect(keys[0] != keys[1] and all(len(key) == 36 for key in keys), f"keys {keys}")
        bearers = {one.headers["authorization"] for one in (first, second)}
        expect(bearers == {f"Bearer {SECRET}-a"}, f"{bearers}")


def test_requests_to_another_url(build: Build, server: LadderServer) -> None:
    inbox = Inbox()
    server.plan("/", {Leg.SSE: [stream()]})
    server.plan("/in", {Leg.POST: [inbox.post]})
    with Bot(build, server.origin, transports=2, send_url=server.url("/in?a=b")) as bot:
        bot.expect("transport 2", "open 2 0")
        bot.send("1")
        bot.expect("sent 1 RT_OK 202")
        bot.end()
    expect(server.of("/in", Leg.POST)[0].target == "/in?a=b", "another target")


def test_requests_have_the_user_of_the_base_url(build: Build, server: LadderServer) -> None:
    """Like legs, if there is no token."""
    server.plan("/", {Leg.SSE: [stream()], Leg.POST: [status(202)]})
    server.plan("/one", {Leg.POLL: [polled(b"one")]})
    with Bot(build, server.origin.replace("//", "//me:pw@"), transports=2) as bot:
        bot.expect("transport 2", "open 2 0")
        bot.send("1")
        bot.expect("sent 1 RT_OK 202")
        bot.tell("request GET one")
        bot.expect("done RT_OK 200 one")
        bot.end()
    shown = [exchange.headers.get("authorization") for _, exchange in server.seen]
    expect(shown == ["Basic bWU6cHc="] * 3, f"{shown}")


def test_requests_are_retried(build: Build, server: LadderServer) -> None:
    """They have the same key, so that the server accepts none twice."""
    inbox = Inbox()
    busy = status(503, "Retry-After: 0")
    posts: list[Script] = [inbox.post_and_cut, busy, inbox.post]
    server.plan("/", {Leg.SSE: [stream()], Leg.POST: posts})
    with Bot(build, server.origin, transports=2) as bot:
        bot.expect("transport 2", "open 2 0")
        for line in ("text 1", "text 2"):
            bot.tell(line)
        numbers = ["numbered 1", "numbered 2"]
        bot.expect_interleaved(numbers, ["sent 1 RT_OK 202", "sent 2 RT_OK 202"])
        bot.end()
    keys = [one.headers["idempotency-key"] for one in server.of("/", Leg.POST)]
    expect(len(set(keys[:3])) == 1 and len(set(keys)) == 2, f"keys {keys}")
    expect(inbox.texts == ["1", "2"], f"received {inbox.texts}")


def test_failed_requests_are_reported(build: Build, server: LadderServer) -> None:
    """The next requests continue."""
    inbox = Inbox()
    posts: list[Script] = [status(400), status(413), inbox.post]
    server.plan("/", {Leg.SSE: [stream()], Leg.POST: posts})
    with Bot(build, server.origin, transports=2) as bot:
        bot.expect("transport 2", "open 2 0")
        for line in ("text 1", "text 2", "text 3"):
            bot.tell(line)
        ends = ["RT_ERROR_HTTP_STATUS 400", "RT_ERROR_HTTP_STATUS 413", "RT_OK 202"]
        bot.expect_interleaved(
            [f"numbered {number}" for number in (1, 2, 3)],
            [f"sent {number} {end}" for number, end in enumerate(ends, 1)],
        )
        bot.end()
    expect(inbox.texts == ["3"], f"received {inbox.texts}")


def test_requests_with_a_bad_answer_were_taken(build: Build, server: LadderServer) -> None:
    """A status of 2xx confirms the message, whatever follows."""
    inbox = Inbox()
    bad = [
        b"Content-Length: 99999999999999999999",
        b"Content-Length: 3\r\nContent-Length: 4",
        b"Content-Length: many",
        b"Transfer-Encoding: gzip, chunked",
        b"no field",
    ]
    server.plan("/", {Leg.SSE: [stream()], Leg.POST: [inbox.post_and_say(b) for b in bad]})
    with Bot(build, server.origin, transports=2) as bot:
        bot.expect("transport 2", "open 2 0")
        for number in range(1, len(bad) + 1):
            bot.send(f"{number}")
            bot.expect(f"sent {number} RT_OK 200")
        bot.end()
    expect(server.count("/", Leg.POST) == len(bad), "sent again")


def test_frames_that_may_be_lost_are_reported(build: Build, server: LadderServer) -> None:
    """Frames that were written and not confirmed; the library does not repeat them itself."""
    inbox = Inbox()
    server.plan("/", {Leg.WEBSOCKET: [inbox.socket_for(1), inbox.socket]})
    with Bot(build, server.origin, **NO_PROBES) as bot:
        bot.expect("transport 1", "open 1 0")
        bot.send("1")
        told = {bot.next(), bot.next()}
        bot.expect("open 1 0")
        bot.send("2")
        bot.expect("sent 2 RT_OK 0")
        bot.end()
    expect("sent 1 RT_ERROR_CONNECTION_LOST 0" in told, f"received {told}")
    expect(inbox.texts == ["1", "2"], f"received {inbox.texts}")


def test_unwritten_frames_are_sent_by_the_next_leg(build: Build, server: LadderServer) -> None:
    """The server reads nothing, so only what the kernel takes is written. The rest waits for the
    next leg, and is sent in the same order."""
    inbox = Inbox()
    stuck: queue.Queue[None] = queue.Queue()

    def deaf(exchange: Exchange) -> None:
        Socket(exchange)
        stuck.get(timeout=PATIENCE_S)

    server.plan("/", {Leg.WEBSOCKET: [deaf, inbox.socket], Leg.POST: [inbox.post]})
    count = 250
    with Bot(build, server.origin, queue="1000,0", **NO_PROBES) as bot:
        bot.expect("transport 1", "open 1 0")
        for number in range(1, count + 1):
            bot.tell(f"text {number} " + "x" * 60_000)
            bot.expect(f"numbered {number}")
        stuck.put(None)
        ended: dict[int, str] = {}
        while len(ended) < count:
            # Until the next leg is open, also by requests.
            found = bot.until(r"sent (\d+) (\w+) (?:0|202)", "error .* 1", "open 1 0")
            expect(int(found[1]) not in ended, f"{found[1]} was reported twice")
            ended[int(found[1])] = found[2]
        bot.end()
    lost = [number for number, how in ended.items() if how == "RT_ERROR_CONNECTION_LOST"]
    sent = [number for number, how in ended.items() if how == "RT_OK"]
    expect(sorted(lost + sent) == list(range(1, count + 1)), "not all")
    received = [int(text.split(" ")[0]) for text in inbox.texts]
    expect(0 < len(lost) < count and received == sent == sorted(sent), f"received {received}")


# The queue


def test_a_hundred_wait_for_a_network(build: Build, server: LadderServer) -> None:
    """When the network is back they are sent in order, whichever leg comes first."""
    inbox = Inbox()
    server.plan("/", {Leg.WEBSOCKET: [inbox.socket], Leg.POST: [inbox.post]})
    with Bot(build, server.origin, online=0) as bot:
        for number in range(1, 103):
            bot.tell(f"text {number}")
        ended: list[str] = []
        numbered = 0
        while numbered < 102 or len(ended) < 2:
            line = bot.next()
            numbered += line.startswith("numbered")
            if line.startswith("sent"):
                ended.append(line)
        wanted = [f"sent {number} RT_ERROR_QUEUE_FULL 0" for number in (101, 102)]
        expect(ended == wanted, f"ended {ended}")
        bot.tell("online 1")
        for number in range(1, 101):
            bot.until(f"sent {number} RT_OK .*", "transport 1", "open 1 0")
        bot.end()
    expect(inbox.texts == [str(number) for number in range(1, 101)], f"{inbox.texts}")


def test_the_oldest_makes_room(build: Build, server: LadderServer) -> None:
    inbox = Inbox()
    server.plan("/", {Leg.SSE: [stream()], Leg.POST: [inbox.post]})
    with Bot(build, server.origin, online=0, transports=2, queue="2,1") as bot:
        bot.waits_for_network()
        for number in (1, 2, 3):
            bot.send(str(number))
        bot.expect("sent 1 RT_ERROR_QUEUE_FULL 0")
        bot.tell("online 1")
        ended = {bot.next() for _ in range(4)}
        bot.end()
    wanted = {"transport 2", "open 2 0", "sent 2 RT_OK 202", "sent 3 RT_OK 202"}
    expect(ended == wanted, f"told {ended}")
    expect(inbox.texts == ["2", "3"], f"received {inbox.texts}")


def test_waiting_sends_can_be_cancelled(build: Build, server: LadderServer) -> None:
    inbox = Inbox()
    server.plan("/", {Leg.SSE: [stream()], Leg.POST: [inbox.post]})
    with Bot(build, server.origin, online=0, transports=2) as bot:
        bot.waits_for_network()
        for number in (1, 2, 3):
            bot.send(str(number))
        for number in (2, 1):
            bot.tell(f"cancel {number}")
            bot.expect(f"sent {number} RT_ERROR_CANCELLED 0")
        bot.tell("online 1")
        bot.until("sent 3 RT_OK 202", "transport 2", "open 2 0")
        bot.tell("cancel 3")
        bot.tell("disconnect")
        bot.until("disconnected RT_OK", "transport .*", "open 2 0")
        bot.end()
    expect(inbox.texts == ["3"], f"received {inbox.texts}")


def test_frames_wait_for_a_request(build: Build, server: LadderServer) -> None:
    """If a WebSocket opens during a request, its frames do not overtake the request."""
    inbox = Inbox()
    posted: queue.Queue[None] = queue.Queue()
    free: queue.Queue[None] = queue.Queue()

    def post_late(exchange: Exchange) -> None:
        posted.put(None)
        free.get(timeout=PATIENCE_S)
        inbox.post(exchange)

    sockets: list[Script] = [status(404), socket(), inbox.socket]
    server.plan(
        "/",
        {Leg.WEBSOCKET: sockets, Leg.SSE: [stream()], Leg.POST: [post_late]},
    )
    with Bot(build, server.origin, upgrade="50,50") as bot:
        bot.expect("error RT_ERROR_HTTP_STATUS 1 404 0 0", "transport 2", "open 2 0")
        for line in ("text 1", "text 2", "text 3"):
            bot.tell(line)
        posted.get(timeout=PATIENCE_S)
        numbers = ["numbered 1", "numbered 2", "numbered 3"]
        bot.expect_interleaved(numbers, ["transport 1", "open 1 0"])
        bot.is_silent()
        free.put(None)
        bot.expect("sent 1 RT_OK 202", "sent 2 RT_OK 0", "sent 3 RT_OK 0")
        bot.end()
    expect(inbox.texts == ["1", "2", "3"], f"received {inbox.texts}")
    expect(inbox.ways == {"frame", "request"}, f"by {inbox.ways}")


def test_one_order_over_all_legs(build: Build, server: LadderServer) -> None:
    """Legs are cut and refused, requests too. A send that ends well has arrived once and in order;
    one that is reported lost may have arrived."""
    inbox = Inbox()
    choice = random.Random(5)
    count = 80

    def some_socket(exchange: Exchange) -> None:
        how = choice.random()
        if how < 0.4:
            status(404)(exchange)
        else:
            inbox.socket_for(choice.randrange(1, 8))(exchange)

    def some_stream(exchange: Exchange) -> None:
        exchange.begin()
        exchange.connection.settimeout(choice.uniform(0.01, 0.05))
        exchange.hold()

    def some_post(exchange: Exchange) -> None:
        how = choice.random()
        if how < 0.05:
            status(503, "Retry-After: 0")(exchange)
        elif how < 0.1:
            inbox.post_and_cut(exchange)
        else:
            inbox.post(exchange)

    server.plan("/", {Leg.WEBSOCKET: [some_socket], Leg.SSE: [some_stream], Leg.POST: [some_post]})
    server.plan("/", {Leg.POLL: [polled(b"x", "Last-Event-ID: 1")]})
    options = {**QUICKLY, "upgrade": "10,10", "max_reconnects": 50, "queue": "1000,0"}
    ended: dict[int, str] = {}
    with Bot(build, server.origin, **options) as bot:
        known = ("error .*", "open .*", "transport .*")
        submitted = 0
        while len(ended) < count:
            # Some at a time, so that they meet every leg.
            while submitted < count and submitted - len(ended) < 5:
                submitted += 1
                bot.tell(f"text {submitted}")
            found = bot.until(r"sent (\d+) (\w+) \d+|numbered \d+", *known)
            if found[1]:
                expect(int(found[1]) not in ended, f"{found[1]} was reported twice")
                ended[int(found[1])] = found[2]
        bot.end()
    received = [int(text) for text in inbox.texts]
    expect(received == sorted(set(received)), f"received {received}")
    sent = {number for number, how in ended.items() if how == "RT_OK"}
    lost = {number for number, how in ended.items() if how == "RT_ERROR_CONNECTION_LOST"}
    expect(sent | lost == set(range(1, count + 1)), f"ended {ended}")
    expect(sent <= set(received), f"not received: {sent - set(received)}")
    expect(inbox.ways == {"frame", "request"} and len(sent) > 0, f"by {inbox.ways}")
