"""Requests with asyncio, and blocking ones."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import librealtime
from librealtime import sync

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "Tests" / "Support"))

from rest_server import RESTServer

#: Short, so that no test waits for long.
QUICKLY: dict[str, Any] = {"base_delay": 0.002, "max_delay": 0.01}


@pytest.fixture
def rest_server() -> Iterator[RESTServer]:
    with RESTServer() as running:
        yield running


def test_methods_and_bodies(run: Any, rest_server: RESTServer) -> None:
    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url, headers={"X-Kept": "1"}) as client:
            response = await client.get("/echo", params={"q": ["ä b", "&"], "no": None, "on": True})
            assert (response.status_code, response.reason_phrase) == (200, "Said")
            assert response.headers["content-type"] == "application/json"
            said = response.json()
            assert said["target"] == "/echo?q=%C3%A4%20b&q=%26&on=true"
            assert ["X-Kept", "1"] in said["headers"]
            assert response.text == response.content.decode()
            assert response.url.startswith(rest_server.url + "/echo")
            assert (response.http_version, response.attempts) == ("HTTP/1.1", 1)
            said = (await client.post("/echo", json={"a": [1, None, "é"]})).json()
            assert said["method"] == "POST"
            assert said["body"].encode("latin-1").decode() == '{"a":[1,null,"é"]}'
            assert ["Content-Type", "application/json"] in said["headers"]
            said = (await client.put("/echo", content="text", headers={"x-kept": "2"})).json()
            assert (said["method"], said["body"]) == ("PUT", "text")
            assert ["x-kept", "2"] in said["headers"]
            assert ["X-Kept", "1"] not in said["headers"]
            said = (await client.patch("/echo", content=b"\0\1", content_type="a/b")).json()
            assert (said["method"], said["body"]) == ("PATCH", "\0\1")
            assert (await client.delete("/echo")).json()["method"] == "DELETE"
            assert (await client.head("/echo")).content == b""
            assert rest_server.connections == 1

    run(main())


def test_any_status_is_an_answer(run: Any, rest_server: RESTServer) -> None:
    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url, **QUICKLY) as client:
            response = await client.get("/status/404")
            assert not response.is_success
            with pytest.raises(librealtime.HTTPStatusError, match=r"404 \"Said\"") as raised:
                response.raise_for_status()
            assert raised.value.response is response
            assert (await client.get("/flaky/a/2")).raise_for_status().attempts == 3
            response = await client.get("/status/503?retry_after=100")
            assert (response.attempts, response.retry_after) == (1, 100)

    run(main())


def test_requests_without_an_answer_raise(run: Any, rest_server: RESTServer) -> None:
    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url, attempts=1) as client:
            with pytest.raises(librealtime.ConnectFailed):
                await client.get("http://127.0.0.1:1/")
            with pytest.raises(librealtime.ConnectionLost):
                await client.get("/short/a/1")
            with pytest.raises(TimeoutError, match=r"\(timeout\)"):
                await client.get("/silent/a/1", timeout=0.05)
            with pytest.raises(TimeoutError, match="deadline"):
                await client.get("/silent/b/1", timeout=None, deadline=0.05)
            with pytest.raises(librealtime.SecurityError, match="max_redirects"):
                await client.get("/loop")
            with pytest.raises(librealtime.RealtimeError, match="max_body_size"):
                await client.get("/bytes/5000", max_body_size=4999)
            with pytest.raises(librealtime.InvalidURI):
                await client.get("ftp://host/")
            with pytest.raises(librealtime.InvalidArgument):
                await client.get("/echo", headers={"Upgrade": "x"})
            with pytest.raises(librealtime.InvalidArgument, match="once"):
                await client.get("/echo", headers=[("Host", "x"), ("host", "y")])
            with pytest.raises(ValueError, match="json, data and content"):
                await client.post("/echo", json=1, content=b"")
            with pytest.raises(TypeError, match="content is an int"):
                await client.post("/echo", content=3)
            with pytest.raises(TypeError):
                await client.get("/echo", unknown=1)

    run(main())


def test_many_at_once_share_connections(run: Any, rest_server: RESTServer) -> None:
    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url) as client:
            paths = [f"/echo?{number}" for number in range(200)]
            responses = await asyncio.gather(*(client.get(path) for path in paths))
            assert [response.json()["target"] for response in responses] == paths
            assert rest_server.connections <= 6

    run(main())


def test_ordered_requests_keep_their_order(run: Any, rest_server: RESTServer) -> None:
    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url, **QUICKLY) as client:
            paths = [f"/flaky/{number}/{number % 3}" for number in range(20)]
            await asyncio.gather(*(client.post(path) for path in paths))
            seen = [request.target for request in rest_server.seen]
            assert list(dict.fromkeys(seen)) == paths
            assert len(seen) == sum(1 + number % 3 for number in range(20))

    run(main())


def test_cancelling_the_wait_cancels_the_request(run: Any, rest_server: RESTServer) -> None:
    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url) as client:
            task = asyncio.create_task(client.get("/silent/a/9", timeout=None))
            while not rest_server.seen:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.get("/silent/b/9", timeout=None), 0.05)
            assert (await client.get("/echo")).is_success

    run(main())


def test_close_ends_outstanding_requests(run: Any, rest_server: RESTServer) -> None:
    async def main() -> None:
        client = librealtime.RESTClient(rest_server.url)
        task = asyncio.create_task(client.get("/silent/a/9"))
        while not rest_server.seen:
            await asyncio.sleep(0.01)
        await client.aclose()
        with pytest.raises(librealtime.ConnectionClosed):
            await task
        with pytest.raises(librealtime.InvalidState):
            await client.get("/echo")
        await client.aclose()

    run(main())


def test_an_unreferenced_client_is_collected(
    run: Any, rest_server: RESTServer, no_linger: None
) -> None:
    async def main() -> None:
        client = librealtime.RESTClient(rest_server.url)
        assert (await client.get("/echo")).is_success

    run(main())


def test_streamed_answers(run: Any, rest_server: RESTServer) -> None:
    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url, **QUICKLY) as client:
            size = 5_000_000
            async with client.stream("GET", f"/bytes/{size}") as response:
                assert response.status_code == 200
                with pytest.raises(librealtime.InvalidState):
                    _ = response.content
                count = 0
                async for data in response.aiter_bytes():
                    assert data == bytes((count + i) % 251 for i in range(len(data)))
                    count += len(data)
            assert count == size
            async with client.stream("GET", "/flaky/a/1") as response:
                assert (await response.aread()) == response.content
                assert response.json()["target"] == "/flaky/a/1"
                # Of a body that was read, as often as needed.
                assert [line async for line in response.aiter_lines()] == [response.text]
            async with client.stream("GET", "/status/404") as response:
                assert [line async for line in response.aiter_lines()] == ["status 404"]
            async with client.stream("GET", "/bytes/5000000") as response:
                async for _ in response.aiter_bytes():
                    break
            with pytest.raises(librealtime.ConnectionLost):
                async with client.stream("GET", "/short/a/1") as response:
                    await response.aread()
            with pytest.raises(librealtime.ConnectFailed):
                async with client.stream("GET", "http://127.0.0.1:1/", attempts=1):
                    pass

    run(main())


def test_bodies_from_elsewhere(run: Any, rest_server: RESTServer) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"one ", b"", b"two ", b"x" * 100_000):
            await asyncio.sleep(0)
            yield piece

    async def broken() -> AsyncIterator[bytes]:
        yield b"some"
        raise ZeroDivisionError

    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url, **QUICKLY) as client:
            said = (await client.post("/echo", content=pieces())).json()
            assert said["body"] == "one two " + "x" * 100_000
            assert ["Transfer-Encoding", "chunked"] in said["headers"]
            said = (await client.post("/echo", content=(b"a", "b"))).json()
            assert said["body"] == "ab"
            progress: list[tuple[int, int, int, int]] = []
            file = io.BytesIO(b"xyz" * 50_000)
            file.seek(3)
            response = await client.put(
                "/flaky/a/1", content=file, on_progress=lambda *counts: progress.append(counts)
            )
            assert (response.attempts, len(response.json()["body"])) == (2, 149_997)
            assert max(sent for sent, _, _, _ in progress) == 149_997
            # A generator that has begun cannot restart.
            assert (await client.put("/flaky/b/1", content=iter([b"a"]))).status_code == 503
            for bad in (broken(), (1 / 0 for _ in range(1))):
                with pytest.raises(ZeroDivisionError):
                    await client.post("/echo", content=bad)

    run(main())


def test_retries_are_reported(run: Any, rest_server: RESTServer) -> None:
    told: list[tuple[Any, float, int]] = []

    def on_retry(*details: Any) -> None:
        told.append(details)

    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url, **QUICKLY) as client:
            assert (await client.get("/flaky/r/2", on_retry=on_retry)).attempts == 3
            check()
            async with client.stream("GET", "/flaky/s/2", on_retry=on_retry) as response:
                assert response.attempts == 3
            check()
            with pytest.raises(librealtime.ConnectFailed):
                await client.get("http://127.0.0.1:1/", attempts=2, on_retry=on_retry)
            ((error, _, attempt),) = told
            assert isinstance(error, librealtime.ConnectFailed) and attempt == 2
            assert getattr(error, "response", None) is None
            told.clear()

    def check() -> None:
        assert [attempt for _, _, attempt in told] == [2, 3]
        for error, delay, _ in told:
            assert isinstance(error, librealtime.InvalidStatus)
            assert error.response.status_code == 503 and "was answered with 503" in str(error)
            assert 0 <= delay <= QUICKLY["max_delay"]
        told.clear()

    run(main())
    with sync.RESTClient(rest_server.url, **QUICKLY) as client:
        assert client.get("/flaky/u/2", on_retry=on_retry).attempts == 3
        check()
        # What it raises ends the request.
        with pytest.raises(ZeroDivisionError):
            client.get("/flaky/v/1", on_retry=lambda *_: 1 / 0)


def test_waits_for_a_network_are_reported(rest_server: RESTServer) -> None:
    network = librealtime.Reachability("manual")
    network.set_online(False)
    told: list[tuple[Any, float | None, int]] = []

    def on_retry(*details: Any) -> None:
        told.append(details)
        network.set_online(True)

    with sync.RESTClient(rest_server.url, reachability=network) as client:
        assert client.get("/flaky/w/0", on_retry=on_retry).attempts == 1
    ((error, delay, attempt),) = told
    assert (delay, attempt) == (None, 1)
    assert isinstance(error, librealtime.ConnectFailed) and "no network reaches it" in str(error)


def test_credentials(run: Any, rest_server: RESTServer) -> None:
    async def main() -> None:
        asked = []

        def give() -> str:
            asked.append(1)
            return "good"

        async def fetch() -> str | None:
            asked.append(2)
            await asyncio.sleep(0.01)
            return "good" if len(asked) == 2 else None

        url = rest_server.url
        async with librealtime.RESTClient(url, bearer_token="old", credentials=give) as client:
            all_ = await asyncio.gather(*(client.get("/token") for _ in range(5)))
            assert [response.status_code for response in all_] == [200] * 5
            assert asked == [1]
        async with librealtime.RESTClient(url, auth=("u", "p"), credentials=fetch) as client:
            assert (await client.get("/token")).is_success
            client.set_bearer_token("bad")
            assert (await client.get("/token")).status_code == 401
        async with librealtime.RESTClient(url) as client:
            assert (await client.get("/token")).status_code == 401
            client.set_auth("u", "p")
            said = (await client.get("/echo")).json()
            assert ["Authorization", "Basic dTpw"] in said["headers"]

    run(main())


def test_without_a_network_requests_wait(run: Any, rest_server: RESTServer) -> None:
    async def main() -> None:
        reachability = librealtime.Reachability("manual")
        reachability.set_online(False)
        options: dict[str, Any] = {"reachability": reachability, "queue_capacity": 2}
        network = librealtime.Network(resolve={("rest.test", rest_server.port): "127.0.0.1"})
        url = f"http://rest.test:{rest_server.port}"
        async with librealtime.RESTClient(url, network=network, **options) as client:
            tasks = [asyncio.create_task(client.post(f"/echo/{n}")) for n in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(librealtime.QueueFull, match="queue_capacity"):
                await client.get("/echo")
            assert not rest_server.seen
            reachability.set_online(True)
            for task in tasks:
                assert (await task).is_success
            assert [request.target for request in rest_server.seen] == ["/echo/0", "/echo/1"]

    run(main())


def test_options_are_checked(run: Any) -> None:
    async def main() -> None:
        for options, what in (
            ({"base_url": "ws://h/"}, "http"),
            ({"base_url": "http://h/", "attempts": 0}, "attempts"),
            ({"timeout": -1}, "timeout"),
            ({"jitter": "some"}, "jitter"),
            ({"queue_overflow": "drop"}, "queue_overflow"),
            ({"ordered": "yes"}, "ordered"),
            ({"auth": ("a", "b"), "bearer_token": "t"}, "one of them"),
            ({"max_per_host": 0}, "max_per_host"),
            ({"headers": {"A\r": "b"}}, "header"),
        ):
            with pytest.raises(librealtime.InvalidArgument, match=what):
                async with librealtime.RESTClient(**options):
                    pass

    run(main())


def test_without_a_limit_any_retry_after_is_waited_for(rest_server: RESTServer) -> None:
    options: dict[str, Any] = {"attempts": 2, "deadline": None}
    for longest, attempts in ((None, 2), (1, 2), (0.5, 1), (0, 1)):
        with sync.RESTClient(rest_server.url, max_retry_after=longest, **options) as client:
            response = client.get("/status/503?retry_after=1")
            assert (response.attempts, response.retry_after) == (attempts, 1)


def test_delays_must_not_be_none() -> None:
    """None would mean no delay at all, and requests would follow each other without pause."""
    for name in ("base_delay", "max_delay"):
        with pytest.raises(TypeError, match=f"{name} is None; seconds are expected"):
            sync.RESTClient(**{name: None})  # type: ignore[arg-type]
    sync.RESTClient(base_delay=0, max_delay=0).close()


def test_blocking(rest_server: RESTServer) -> None:
    with sync.RESTClient(rest_server.url, **QUICKLY) as client:
        assert client.get("/flaky/a/2").attempts == 3
        assert client.post("/echo", json={}).json()["body"] == "{}"
        assert client.put("/echo", content=io.BytesIO(b"file")).json()["body"] == "file"
        assert client.patch("/echo").json()["method"] == "PATCH"
        assert client.delete("/echo").json()["method"] == "DELETE"
        assert client.head("/echo").content == b""
        with pytest.raises(ZeroDivisionError):
            client.post("/echo", content=(1 / 0 for _ in range(1)))
        with pytest.raises(TimeoutError):
            client.get("/silent/a/1", timeout=0.05, attempts=1)
        with client.stream("GET", "/bytes/3000000") as response:
            assert sum(len(data) for data in response.iter_bytes()) == 3_000_000
        with client.stream("GET", "/status/404") as response:
            assert list(response.iter_lines()) == ["status 404"]
        with client.stream("GET", "/echo") as response:
            assert response.read() == response.content
        assert rest_server.connections < 10
    with pytest.raises(librealtime.InvalidState):
        client.get("/echo")


def test_blocking_with_threads(rest_server: RESTServer) -> None:
    results: list[str] = []
    with sync.RESTClient(rest_server.url, credentials=lambda: "good") as client:

        def work(number: int) -> None:
            for round_ in range(10):
                path = f"/token?{number}.{round_}"
                results.append(client.get(path).raise_for_status().json()["target"])

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(results) == sorted(f"/token?{n}.{r}" for n in range(8) for r in range(10))


def test_errors_can_be_pickled(rest_server: RESTServer) -> None:
    import pickle

    with sync.RESTClient(rest_server.url) as client:
        with pytest.raises(librealtime.HTTPStatusError) as raised:
            client.get("/status/404").raise_for_status()
        again = pickle.loads(pickle.dumps(raised.value))
        assert again.response.status_code == 404
