"""Mistakes in a request, a client or its use raise an error, and nothing waits forever."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import librealtime
from librealtime import sync
from librealtime._core.abi import rt_status
from librealtime._core.loader import lib
from librealtime._rest.call import Call

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "Tests" / "Support"))

from rest_server import RESTServer


@pytest.fixture
def rest_server() -> Iterator[RESTServer]:
    with RESTServer() as running:
        yield running


def test_a_mapping_is_refused_as_content(run: Any, rest_server: RESTServer) -> None:
    """Otherwise only its keys would be sent."""

    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url) as client:
            with pytest.raises(TypeError, match="dict"):
                await client.post("/echo", content={"a": "b"})

    run(main())
    with sync.RESTClient(rest_server.url) as client, pytest.raises(TypeError, match="dict"):
        client.post("/echo", content={"a": "b"})


def test_values_that_are_not_json(rest_server: RESTServer) -> None:
    itself: list[Any] = []
    itself.append(itself)
    with sync.RESTClient(rest_server.url) as client:
        for value in (float("nan"), {"a": float("inf")}, itself):
            with pytest.raises(librealtime.InvalidArgument, match="JSON"):
                client.post("/echo", json=value)
        with pytest.raises(TypeError):
            client.post("/echo", json={1, 2})
    assert not rest_server.seen


def test_use_on_another_asyncio_loop_raises(run: Any, rest_server: RESTServer) -> None:
    """Nothing would arrive there."""
    client = librealtime.RESTClient(rest_server.url)

    async def first() -> None:
        assert (await client.get("/echo")).is_success

    async def second() -> None:
        with pytest.raises(librealtime.InvalidState, match="asyncio"):
            await client.get("/echo")
        with pytest.raises(librealtime.InvalidState, match="asyncio"):
            async with client.stream("GET", "/echo"):
                pass
        await client.aclose()

    run(first())
    run(second())


def test_a_longer_time_of_the_request_is_its_deadline_too(
    run: Any, rest_server: RESTServer
) -> None:
    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url, deadline=0.05, attempts=1) as client:
            for timeout in (None, 60):
                assert (await client.get("/slow/200", timeout=timeout)).content
            with pytest.raises(TimeoutError, match="deadline"):
                await client.get("/slow/200", timeout=60, deadline=0.05)
            with pytest.raises(TimeoutError):
                await client.get("/slow/200", timeout=0.01)

    run(main())
    with sync.RESTClient(rest_server.url, deadline=0.05) as client:
        assert client.get("/slow/200", timeout=None).content


def test_a_request_during_a_close(rest_server: RESTServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread closes the client between a request's submission and its wait."""
    client = sync.RESTClient(rest_server.url)
    send = lib.rt_rest_request_send

    def meet(*arguments: Any) -> int:
        status = send(*arguments)
        client.close()
        return status

    monkeypatch.setattr(lib, "rt_rest_request_send", meet)
    ends = []

    def wait() -> None:
        try:
            client.get("/silent/a/1")
        except librealtime.ConnectionClosedError as error:
            ends.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(30)
    assert len(ends) == 1


@pytest.mark.parametrize("answer", [None, "bad"])
def test_a_refusal_is_an_answer(run: Any, rest_server: RESTServer, answer: str | None) -> None:
    """If there are no other credentials, or they are refused, too."""

    async def fetch() -> str | None:
        await asyncio.sleep(0)
        return answer

    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url, credentials=fetch) as client:
            assert (await client.get("/token")).status_code == 401

    run(main())
    with sync.RESTClient(rest_server.url, credentials=lambda: answer) as client:
        assert client.get("/token").status_code == 401


def test_credentials_that_fail(run: Any, rest_server: RESTServer) -> None:
    answers: list[Any] = [None, ZeroDivisionError]

    async def fetch() -> None:
        await asyncio.sleep(0)
        answer = answers.pop(0)
        if answer is not None:
            raise answer

    async def main() -> None:
        failures = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: failures.append(context["exception"]))
        async with librealtime.RESTClient(rest_server.url, credentials=fetch) as client:
            assert (await client.get("/token")).status_code == 401
            with pytest.raises(librealtime.AuthenticationFailed) as raised:
                await client.get("/token")
            assert isinstance(raised.value.__cause__, ZeroDivisionError)
            assert str(raised.value) == "fetching credentials failed: ZeroDivisionError()"
        # It is reported once.
        assert failures == []

    run(main())


def test_credentials_that_fail_while_another_call_waits(rest_server: RESTServer) -> None:
    """Whichever thread drives the loop, the request that was refused gets the exception."""
    cause, ends = LookupError("no vault"), []

    def fail() -> str:
        raise cause

    with sync.RESTClient(rest_server.url, credentials=fail) as client:
        thread = threading.Thread(target=lambda: ends.append(client.get("/slow/500").status_code))
        thread.start()
        while not rest_server.connections:
            threading.Event().wait(0.001)
        with pytest.raises(librealtime.AuthenticationFailed) as raised:
            client.get("/token")
        assert raised.value.__cause__ is cause
        assert str(raised.value) == "fetching credentials failed: no vault"
        thread.join(30)
        assert ends == [200]
        assert client.get("/echo").status_code == 200


def test_a_body_that_is_lost(rest_server: RESTServer) -> None:
    """There was a connection: retrying it as if it had not been sent would send it twice."""
    with sync.RESTClient(rest_server.url, attempts=1) as client:
        for place in ("/short/a/1", "/reset/b/1"):
            with pytest.raises(librealtime.ConnectionLost) as caught:
                client.get(place)
            assert isinstance(caught.value, ConnectionError)
            assert not isinstance(caught.value, librealtime.ConnectFailed)


def test_a_streamed_answer_that_broke_off_stays_broken(run: Any, rest_server: RESTServer) -> None:
    """Reading it again raises again: an incomplete body never passes for a complete one."""

    def looks_broken(response: librealtime.RESTResponse) -> None:
        for look in (lambda: response.content, lambda: response.text, response.json):
            with pytest.raises(librealtime.InvalidState, match="body"):
                look()

    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url) as client:
            async with client.stream("GET", "/short/a/1") as response:
                for _ in range(3):
                    with pytest.raises(librealtime.ConnectionLost) as caught:
                        await response.aread()
                    assert caught.value.response.status_code == 200  # type: ignore[attr-defined]
                    looks_broken(response)
                with pytest.raises(librealtime.ConnectionLost):
                    _ = [data async for data in response.aiter_bytes()]
            looks_broken(response)

    run(main())
    with sync.RESTClient(rest_server.url) as client:
        with client.stream("GET", "/short/b/1") as response:
            for _ in range(3):
                with pytest.raises(librealtime.ConnectionLost):
                    response.read()
                looks_broken(response)
            with pytest.raises(librealtime.ConnectionLost):
                list(response.iter_lines())
        looks_broken(response)


def test_a_failure_that_is_kept_keeps_nothing() -> None:
    """A cycle with the frames of its traceback would keep everything in them alive."""

    class Odd(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__(one)

    def fail(call: Call) -> None:
        try:
            raise Odd(1, 2)
        except Odd as error:
            call.body_failed(error)
        call.finished(rt_status.ERROR_CANCELLED, "cancelled", None)

    def lose(call: Call) -> None:
        call.finished(rt_status.ERROR_CONNECTION_LOST, "lost", None)

    def look(call: Call) -> BaseException:
        try:
            call.result()
        except (Odd, librealtime.RealtimeError) as error:
            return error.with_traceback(None)
        raise AssertionError

    gc.disable()
    try:
        for end, kinds in (
            (lose, [librealtime.ConnectionLost] * 3),
            (fail, [Odd, librealtime.RealtimeError, librealtime.RealtimeError]),
        ):
            call = Call(lambda: None, lambda error: None)
            gone = weakref.ref(call)
            end(call)
            errors = [look(call) for _ in kinds]
            assert [type(error) for error in errors] == kinds
            assert len(set(map(id, errors))) == len(errors)
            assert ("Odd(1)" in str(errors[1])) == (end is fail)
            del call
            assert gone() is None
    finally:
        gc.enable()


def test_a_query_as_it_is_written(rest_server: RESTServer) -> None:
    """A str or bytes, as in httpx."""
    with sync.RESTClient(rest_server.url, params="k=1&l=2") as client:
        for query in ("a=b%20c&k=&%C3%A4=+", b"a=b%20c&k=&%C3%A4=+"):
            client.get("/echo", params=query)
            assert rest_server.seen[-1].target == "/echo?l=2&a=b%20c&k=&%C3%A4=%20"
        for bad in ("a=%ff", b"a=\xff"):
            with pytest.raises(ValueError, match="cannot be encoded as UTF-8"):
                client.get("/echo", params=bad)
        for wrong, kind in ((5, "an int"), (["ab", "c"], "a list"), ({"abc"}, "a set")):
            with pytest.raises(TypeError, match=f"params is {kind}, not a"):
                client.get("/echo", params=wrong)  # type: ignore[arg-type]


def test_an_unknown_option_is_reported_with_a_similar_one(run: Any) -> None:
    async def main() -> None:
        async with librealtime.RESTClient("http://127.0.0.1:1/") as client:
            with pytest.raises(TypeError, match=r"^request\(\) has no option 'nonsense'$"):
                await client.get("x", nonsense=1)  # type: ignore[call-arg]
            with pytest.raises(TypeError, match=r"stream\(\) .*did you mean 'headers'\?"):
                async with client.stream("GET", "x", header={}):  # type: ignore[call-arg]
                    pass

    run(main())
    client = sync.RESTClient("http://127.0.0.1:1/")
    with client, pytest.raises(TypeError, match=r"request\(\) .*did you mean 'params'\?"):
        client.get("x", param={})  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("follow_redirects", "redirects are followed by default; max_redirects=0 follows none"),
        ("allow_redirects", "redirects are followed by default; max_redirects=0 follows none"),
        ("verify", "this is set for the whole client: see ca_file and network of RESTClient"),
        ("proxies", "this is set for the whole client: see proxy of RESTClient"),
        ("files", "pass a file as content; multipart bodies are not supported"),
    ],
)
def test_an_option_of_other_libraries_is_reported_with_a_hint(option: str, hint: str) -> None:
    with sync.RESTClient("http://127.0.0.1:1/") as client:
        with pytest.raises(TypeError) as raised:
            client.get("x", **{option: True})  # type: ignore[misc]
        assert str(raised.value) == f"request() has no option {option!r}: {hint}"


@pytest.mark.parametrize(
    "name", ["connect", "EventSource", "LongPoll", "RESTClient", "Spreadbot", "SpreadbotREST"]
)
@pytest.mark.parametrize("face", [librealtime, sync])
def test_an_unknown_option_of_an_object_is_reported_by_name(face: Any, name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name}\\(\\) got an unexpected .*'nonsense'"):
        getattr(face, name)("http://127.0.0.1:1/", nonsense=1)


@pytest.mark.parametrize("face", [librealtime, sync])
@pytest.mark.parametrize(
    ("name", "option", "hint"),
    [
        ("RESTClient", "follow_redirects", ": redirects are followed by default; "),
        ("connect", "verify", ": see ca_file, and insecure_skip_verification of Network"),
        ("EventSource", "proxies", ": see proxy, and no_proxy of Network"),
        ("LongPoll", "timeout", ": each time limit has its own option, "),
        ("Spreadbot", "header", "; did you mean 'headers'?"),
        ("SpreadbotREST", "cert", ": see client_certificate of Network"),
    ],
)
def test_an_object_suggests_its_name_for_an_option_of_other_libraries(
    face: Any, name: str, option: str, hint: str
) -> None:
    with pytest.raises(TypeError) as raised:
        getattr(face, name)("http://127.0.0.1:1/", **{option: True})
    text = f"{name}() got an unexpected keyword argument {option!r}{hint}"
    assert str(raised.value).startswith(text)


def test_a_body_is_taken_once(run: Any, rest_server: RESTServer) -> None:
    """Pieces already read are not kept: the rest must not pass for the complete body."""

    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url) as client:
            async with client.stream("GET", "/bytes/3000000") as response:
                async for _ in response.aiter_bytes(10):
                    break
                with pytest.raises(librealtime.InvalidState, match="in pieces"):
                    await response.aread()
                with pytest.raises(librealtime.InvalidState, match="read before"):
                    await response.aiter_lines().__anext__()
            async with client.stream("GET", "/bytes/10") as response:
                assert len(b"".join([piece async for piece in response.aiter_bytes()])) == 10
                with pytest.raises(librealtime.InvalidState):
                    await response.aread()
            async with client.stream("GET", "/bytes/10") as response:
                for take in (response.read, lambda: next(response.iter_bytes())):
                    with pytest.raises(librealtime.InvalidState, match="await aread"):
                        take()
                assert len(await response.aread()) == 10
                assert len(b"".join([piece async for piece in response.aiter_bytes()])) == 10
                assert len(response.text) == 10

    run(main())
    with sync.RESTClient(rest_server.url) as client:
        with client.stream("GET", "/bytes/3000000") as response:
            next(response.iter_bytes(10))
            with pytest.raises(librealtime.InvalidState, match="in pieces"):
                response.read()
            with pytest.raises(librealtime.InvalidState, match="read before"):
                next(response.iter_text())
        with client.stream("GET", "/bytes/10") as response:
            assert len(response.read()) == len(b"".join(response.iter_bytes(3))) == 10
