"""What users of httpx expect of clients, requests and responses."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import encodings
import os
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import librealtime
from librealtime import sync
from librealtime._core.abi import rt_status
from librealtime._rest.call import Call
from librealtime._rest.decoders import LineDecoder, SizeDecoder, TextDecoder

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "Tests" / "Support"))

from rest_server import Request, RESTServer


class Server(RESTServer):
    """Adds /body, which sends the request's body back with the ``X-…`` headers of the request."""

    def do_body(self, request: Request, writer: Any, words: list[str]) -> None:
        fields = [f"{name[2:]}: {value}" for name, value in request.headers if name[:2] == "X-"]
        self._say(writer, request, 200, request.body, *fields)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[sync.RESTClient]:
    with sync.RESTClient(server.url, attempts=1) as made:
        yield made


def said(response: librealtime.RESTResponse) -> dict[str, list[str]]:
    """The values of each header that the server received."""
    found: dict[str, list[str]] = {}
    for name, value in response.json()["headers"]:
        found.setdefault(name.lower(), []).append(value)
    return found


@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        ("/status/204", {"success"}),
        ("/redirect/1", {"redirect"}),
        ("/status/404", {"client_error", "error"}),
        ("/status/500", {"server_error", "error"}),
    ],
)
def test_kinds_of_statuses(client: sync.RESTClient, path: str, kinds: set[str]) -> None:
    response = client.get(path, max_redirects=0)
    for kind in ("success", "redirect", "client_error", "server_error", "error"):
        assert getattr(response, f"is_{kind}") == (kind in kinds)


def test_elapsed(run: Any, server: Server, client: sync.RESTClient) -> None:
    least = timedelta(milliseconds=50)
    assert least <= client.get("/slow/50").elapsed < timedelta(minutes=1)
    with client.stream("GET", "/slow/50") as response:
        response.read()
        assert response.elapsed >= least

    async def main() -> None:
        async with librealtime.RESTClient(server.url) as client:
            assert (await client.get("/slow/50")).elapsed >= least
            async with client.stream("GET", "/bytes/5000000") as response:
                with pytest.raises(librealtime.InvalidState, match="end"):
                    _ = response.elapsed
                await response.aread()
                assert response.elapsed > timedelta(0)

    run(main())


def test_cookies(run: Any, server: Server, client: sync.RESTClient) -> None:
    sets = [
        ("X-Set-Cookie", "a=1; Path=/; Secure"),
        ("X-Set-Cookie", " b = c=d"),
        ("X-Set-Cookie", "e"),
    ]
    assert client.get("/body", headers=sets).cookies == {"a": "1", "b": "c=d"}
    # No cookie is stored.
    assert "cookie" not in said(client.get("/echo"))
    assert said(client.get("/echo", cookies={"a": "1", "b": "2"}))["cookie"] == ["a=1; b=2"]

    async def main() -> None:
        cookies = {"a": "1", "b": "2"}
        async with librealtime.RESTClient(server.url, cookies=cookies) as client:
            assert said(await client.get("/echo"))["cookie"] == ["a=1; b=2"]
            response = await client.get("/echo", cookies={"b": "3", "c": "4"})
            assert said(response)["cookie"] == ["a=1; b=3; c=4"]

    run(main())


def test_credentials_of_one_request(run: Any, server: Server) -> None:
    basic = "Basic " + base64.b64encode(b"u:p").decode()

    async def main() -> None:
        async with librealtime.RESTClient(server.url, bearer_token="all") as client:
            assert said(await client.get("/echo"))["authorization"] == ["Bearer all"]
            response = await client.get("/echo", auth=("u", "p"))
            assert said(response)["authorization"] == [basic]
            response = await client.get("/echo", bearer_token="one")
            assert said(response)["authorization"] == ["Bearer one"]
            with pytest.raises(librealtime.InvalidArgument, match="same header"):
                await client.get("/echo", auth=("u", "p"), bearer_token="one")

    run(main())


def test_credentials_that_fail_are_reported_to_each_request(run: Any, server: Server) -> None:
    """That waits for them, and to nobody else."""
    told: list[Any] = []

    async def fetch() -> str:
        raise LookupError("no vault")

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        async with librealtime.RESTClient(server.url, credentials=fetch) as client:
            requests = [client.get("/token") for _ in range(3)]
            for error in await asyncio.gather(*requests, return_exceptions=True):
                assert isinstance(error, librealtime.AuthenticationFailed)
                assert str(error) == "fetching credentials failed: no vault"
                assert isinstance(error.__cause__, LookupError)

    run(main())
    assert told == []


def test_reading_may_be_cancelled(run: Any, server: Server) -> None:
    async def main() -> None:
        # More than arrives between two checks of this task.
        size = 30_000_000
        client = librealtime.RESTClient(server.url)
        async with client, client.stream("GET", f"/bytes/{size}") as response:
            reads = asyncio.ensure_future(response.aread())
            while not response._begun:
                await asyncio.sleep(0)
            reads.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reads
            assert 0 < sum(map(len, response._begun)) < size
            whole = bytes(range(251)) * (size // 251 + 1)
            assert await response.aread() == whole[:size]

    run(main())


def test_parameters_of_all_requests(server: Server) -> None:
    with sync.RESTClient(server.url, params={"key": "k", "page": [1, 2]}) as client:
        assert client.get("/echo").json()["target"] == "/echo?key=k&page=1&page=2"
        response = client.get("/echo?a=b", params=[("page", 3), ("on", True)])
        assert response.json()["target"] == "/echo?a=b&key=k&page=3&on=true"


def test_forms(run: Any, server: Server, client: sync.RESTClient) -> None:
    form = {"a": "b c", "d": ["é", "&"], "no": None, "on": True}
    encoded = "a=b+c&d=%C3%A9&d=%26&on=true"
    response = client.post("/echo", data=form)
    assert response.json()["body"] == encoded
    assert said(response)["content-type"] == ["application/x-www-form-urlencoded"]
    assert client.post("/echo", data={}).json()["body"] == ""

    async def main() -> None:
        async with librealtime.RESTClient(server.url) as client:
            response = await client.post("/echo", data=form.items(), content_type="a/b")
            assert response.json()["body"] == encoded
            assert said(response)["content-type"] == ["a/b"]
            assert (await client.options("/echo")).json()["method"] == "OPTIONS"

    run(main())
    assert client.options("/echo").json()["method"] == "OPTIONS"


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"data": {}, "json": {}}, librealtime.InvalidArgument),
        ({"data": {}, "content": b""}, librealtime.InvalidArgument),
        ({"data": "a=b"}, TypeError),
        ({"data": {"a": "\0"}}, librealtime.InvalidArgument),
        ({"cookies": {"a=b": "c"}}, librealtime.InvalidArgument),
        ({"cookies": [("a", "b")]}, TypeError),
        ({"auth": ("a:b", "c")}, librealtime.InvalidArgument),
        ({"bearer_token": ""}, librealtime.InvalidArgument),
        ({"follow_redirects": True}, TypeError),
    ],
)
def test_invalid_arguments_are_reported(
    client: sync.RESTClient, options: dict[str, Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        client.post("/echo", **options)


def test_properties_of_a_client(run: Any, server: Server) -> None:
    url = server.url.replace("//", "//me:secret@") + "/a"
    with sync.RESTClient(url) as client:
        assert client.base_url == server.url + "/a"
        assert not client.is_closed
    assert client.is_closed
    with pytest.raises(TypeError, match="Reachability is expected"):
        sync.RESTClient(reachability=True)  # type: ignore[arg-type]

    async def main() -> None:
        async with librealtime.RESTClient() as client:
            assert (client.base_url, client.is_closed) == (None, False)
        assert client.is_closed

    run(main())


def polls() -> int:
    """The number of epoll descriptors of this process."""
    names = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the folder's own
            names.append(os.readlink(f"/proc/self/fd/{name}"))
    return names.count("anon_inode:[eventpoll]")


def test_a_closed_client_has_no_descriptors(server: Server) -> None:
    """Even if it is still referred to, and other threads had running requests."""
    before = polls()
    for _ in range(20):
        ended: list[str] = []
        client = sync.RESTClient(server.url)

        def ask(client: sync.RESTClient = client, ended: list[str] = ended) -> None:
            with pytest.raises(librealtime.RealtimeError) as raised:
                client.get("/silent/a/999", timeout=None, deadline=None)
            ended.append(raised.value.name)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        while len(client._calls) < 4:
            threads[0].join(0.001)
        client.close()
        for thread in threads:
            thread.join(60)
        assert ended == ["RT_ERROR_CLOSED"] * 4
        assert client.is_closed
    # Each would have kept its own; one or two may be left by other tests' threads.
    assert polls() < before + 10


def test_a_thread_that_sees_the_end_sees_all_of_it() -> None:
    """Another thread may look at a request while the driving thread ends it."""
    seen: list[bool] = []

    def refused() -> bool:
        seen.append(call.is_over)
        return False

    call = Call(lambda: seen.append(call.is_over), lambda error: None)
    call.is_refused = refused
    answer = librealtime.RESTResponse(401, "", librealtime.Headers(), "", 11)
    call.finished(rt_status.ERROR_AUTH, "refused", answer)
    assert seen == [False, True]
    with pytest.raises(librealtime.RealtimeError):
        call.result()


def test_one_thread_drives_while_another_reads(client: sync.RESTClient) -> None:
    """Nothing is lost at the end, and receiving always resumes after a pause."""
    sizes = [3_000_000, 1, 70_000] * 4
    stopped = threading.Event()

    def drive() -> None:
        while not stopped.is_set():
            client.get("/slow/1")

    driver = threading.Thread(target=drive)
    driver.start()
    try:
        for size in sizes:
            with client.stream("GET", f"/bytes/{size}", timeout=60) as response:
                assert sum(map(len, response.iter_bytes())) == size
    finally:
        stopped.set()
        driver.join(60)


def test_exceptions_of_a_request_are_raised_by_that_request(client: sync.RESTClient) -> None:
    """Whichever thread drives; here it is another one."""
    answers: list[int] = []
    driving = threading.Event()

    def drive() -> None:
        driving.set()
        answers.append(client.get("/slow/300").status_code)

    def refuse(*_: int) -> None:
        raise ValueError("mine")

    for _ in range(3):
        driving.clear()
        driver = threading.Thread(target=drive)
        driver.start()
        driving.wait(60)
        with pytest.raises(ValueError, match="mine"):
            client.get("/bytes/100000", on_progress=refuse)
        driver.join(60)
    assert answers == [200] * 3


def test_encodings(client: sync.RESTClient) -> None:
    def fetch(charset: str) -> librealtime.RESTResponse:
        headers = {"X-Content-Type": f"text/plain; charset={charset}"}
        return client.post("/body", content="ä".encode("latin-1"), headers=headers)

    response = fetch('"ISO-8859-1"')
    assert (response.encoding, response.text) == ("ISO-8859-1", "ä")
    response.encoding = "cp1251"
    assert response.text == "д"
    for charset in ("utf8", "us-ascii", "Windows-1252", "cp037", "Shift_JIS", "GB18030", "Big5"):
        assert fetch(charset).encoding == charset
    # Unknown, not for text, always an error, without a replacement: none of them may raise.
    for charset in ("x", "base64", "undefined", "idna", "cp9999"):
        response = fetch(charset)
        assert (response.encoding, response.text) == ("utf-8", "\ufffd")


@pytest.mark.parametrize("charset", ["punycode", "PUNYCODE", "utf-7", "u7", "unicode.escape"])
def test_servers_choose_character_sets_only(client: sync.RESTClient, charset: str) -> None:
    headers = {"X-Content-Type": f"text/plain; charset={charset}"}
    # Decoding it as punycode would take some seconds.
    content = "a-" + "b" * 100_000
    response = client.post("/body", content=content, headers=headers)
    assert (response.encoding, response.text == content) == ("utf-8", True)
    assert "".join(response.iter_lines()) == content
    with client.stream("POST", "/body", content=content, headers=headers) as stream:
        assert "".join(stream.iter_text()) == content
    # The program itself may choose any encoding.
    response.encoding = "raw_unicode_escape"
    assert response.text == content


def test_unknown_charsets_are_not_kept(client: sync.RESTClient) -> None:
    for number in range(3):
        headers = {"X-Content-Type": f"text/plain; charset=unheard-of-{number}"}
        assert client.post("/body", content="a", headers=headers).text == "a"
    kept: dict[str, object] = vars(encodings)["_cache"]
    assert not [name for name in kept if "unheard" in name]


def test_whole_answers_are_iterated_over(client: sync.RESTClient) -> None:
    response = client.post("/body", content="a\r\nå\n\nb")
    for _ in range(2):
        assert list(response.iter_lines()) == ["a", "å", "", "b"]
        assert "".join(response.iter_text()) == response.text
        assert list(response.iter_bytes()) == [response.content]
        assert list(response.iter_bytes(5)) == [b"a\r\n\xc3\xa5", b"\n\nb"]
    assert response.read() == response.content
    with pytest.raises(ValueError, match="chunk_size is 0"):
        next(response.iter_bytes(0))


def test_streamed_answers_are_cut_to_size(
    run: Any, server: Server, client: sync.RESTClient
) -> None:
    size = 1_000_000
    whole = bytes(i % 251 for i in range(size))
    sizes = [300_000] * 3 + [100_000]
    with client.stream("GET", f"/bytes/{size}") as response:
        pieces = list(response.iter_bytes(chunk_size=300_000))
    assert [len(piece) for piece in pieces] == sizes
    assert b"".join(pieces) == whole
    with client.stream("GET", f"/bytes/{size}") as response:
        assert response.read() == whole
        assert list(response.iter_bytes()) == [whole]

    async def main() -> None:
        async with librealtime.RESTClient(server.url) as client:
            async with client.stream("GET", f"/bytes/{size}") as response:
                pieces = [piece async for piece in response.aiter_bytes(chunk_size=300_000)]
            assert [len(piece) for piece in pieces] == sizes
            assert b"".join(pieces) == whole
            async with client.stream("POST", "/body", content="å\nb") as response:
                assert [line async for line in response.aiter_lines()] == ["å", "b"]
            async with client.stream("POST", "/body", content="å\nb") as response:
                assert await response.aread() == "å\nb".encode()
                assert list(response.iter_lines()) == ["å", "b"]
                assert [text async for text in response.aiter_text()] == ["å\nb"]

    run(main())


@pytest.mark.parametrize("step", [1, 2, 3, 100])
def test_decoders_do_not_care_how_bytes_are_cut(step: int) -> None:
    data = "one\r\ntwo \r three\n\n€uro\ufffd\r".encode() + b"\xff\nlast"
    cuts = [data[at : at + step] for at in range(0, len(data), step)]
    text, lines, sizes = TextDecoder("utf-8"), LineDecoder(), SizeDecoder(7)
    texts = [piece for cut in cuts for piece in text.decode(cut)] + list(text.flush())
    assert "".join(texts) == data.decode("utf-8", "replace")
    found = [line for piece in texts for line in lines.decode(piece)] + list(lines.flush())
    assert found == ["one", "two \r three", "", "€uro\ufffd\r\ufffd", "last"]
    found_sizes = [piece for cut in cuts for piece in sizes.decode(cut)] + list(sizes.flush())
    assert b"".join(found_sizes) == data
    assert {len(piece) for piece in found_sizes[:-1]} == {7}
