"""Requests with tokens that are refreshed, with asyncio and blocking."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

import librealtime
from librealtime import Spreadbot, SpreadbotREST, sync

TOKENS = {
    "access_token": "old",
    "refresh_token": "r0",
    "base64_credentials": "Y2xpZW50OnNlY3JldA==",
}


def test_data_is_got_and_posted(run, bots):
    async def main():
        async with SpreadbotREST(bots.url + "/", access_token="good") as rest:
            assert (await rest.get_data("/secret")).json() == {"secret": 42}
            for payload in ({"a": [1, None]}, "text", b"\0"):
                assert (await rest.post_data("things", payload)).json() == {"stored": True}
            with pytest.raises(librealtime.HTTPStatusError) as caught:
                await rest.post_data("forbidden", {})
            assert caught.value.response.text == "not you"
            # Options that every client has.
            assert (await rest.get("nowhere")).status_code == 404
            with pytest.raises(librealtime.InvalidState):
                rest.set_bearer_token("x")
            with pytest.raises(librealtime.InvalidState):
                rest.set_auth("x", "y")
        with pytest.raises(librealtime.InvalidState):
            await rest.get_data("secret")

    run(main())
    posts = [bots.posts.get(timeout=30) for _ in range(3)]
    assert [data for _, data, _ in posts] == [b'{"a":[1,null]}', b"text", b"\0"]
    assert posts[0][2]["Content-Type"] == "application/json"
    keys = {headers["Idempotency-Key"] for _, _, headers in posts}
    assert len(keys) == 3 and all(keys)


def test_data_is_got_and_posted_blocking(bots):
    with sync.SpreadbotREST(bots.url, access_token="good", headers={"X-A": "b"}) as rest:
        assert rest.get_data("secret").json() == {"secret": 42}
        assert rest.post_data("things", [1]).status_code == 201
        with pytest.raises(librealtime.HTTPStatusError):
            rest.get_data("nowhere")
    _, _, headers = bots.posts.get(timeout=30)
    assert headers["X-A"] == "b" and headers["Authorization"] == "Bearer good"


def test_tokens_are_refreshed_once_for_all(run, bots):
    told = []

    async def main():
        async def keep(access, refresh):
            await asyncio.sleep(0)
            told.append((access, refresh))

        rest = SpreadbotREST(bots.url, auth_url=bots.url + "/auth", on_tokens=keep, **TOKENS)
        async with rest:
            assert (rest.access_token, rest.refresh_token) == ("old", "r0")
            answers = await asyncio.gather(*(rest.get_data("secret") for _ in range(10)))
            assert len(answers) == 10 and bots.refreshes == 1
            assert (rest.access_token, rest.refresh_token) == ("a1", "r1")
            rest.set_tokens("mine", "r1")
            await rest.get_data("secret")
        assert (rest.access_token, rest.refresh_token) == ("a2", "r2")
        with pytest.raises(librealtime.InvalidState):
            rest.set_tokens("x")

    run(main())
    assert told == [("a1", "r1"), ("a2", "r2")]


def test_tokens_are_refreshed_blocking(bots):
    told = []
    config = {
        "baseURL": bots.url,
        "authURL": bots.url + "/auth",
        "accessToken": "older",
        "refreshToken": "r0",
        "base64Credentials": "Y2xpZW50OnNlY3JldA==",
    }
    with sync.SpreadbotREST.from_config(config) as rest:
        rest.on_tokens = lambda *tokens: told.append(tokens)
        rest.set_tokens("old", "r0")
        threads = [threading.Thread(target=rest.get_data, args=("secret",)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert rest.access_token == "a1"
    assert told == [("a1", "r1")] and bots.refreshes == 1


def test_tokens_that_are_refused(run, bots):
    bots.refusal = 400

    async def main():
        options = {**TOKENS, "auth_url": bots.url + "/auth"}
        async with SpreadbotREST(bots.url, **options) as rest:
            with pytest.raises(librealtime.AuthenticationFailed, match="invalid_grant"):
                await rest.get_data("secret")
        # Without an auth_url.
        async with SpreadbotREST(bots.url, access_token="old") as rest:
            with pytest.raises(librealtime.AuthenticationFailed):
                await rest.get_data("secret")

    run(main())


def test_a_client_of_a_connection_ends_with_it(run, bots):
    async def main():
        async with Spreadbot(bots.url, access_token="good") as bot:
            rest = bot.rest
            assert rest is bot.rest and isinstance(rest, SpreadbotREST)
            # Before establish_connection.
            assert (await rest.get_data("secret")).json() == {"secret": 42}
            with pytest.raises(librealtime.InvalidState):
                rest.on_tokens = print
            rest.set_tokens("bad")
            assert bot.access_token == "bad"
            waits = asyncio.ensure_future(rest.get("poll", headers={"Last-Event-ID": "5"}))
            await asyncio.sleep(0.01)
        with pytest.raises(librealtime.ConnectionClosedError):
            await waits
        with pytest.raises(librealtime.InvalidState):
            await rest.get("secret")
        with pytest.raises(librealtime.StreamEnded):
            Spreadbot.rest.fget(await closed())

    async def closed():
        bot = Spreadbot(bots.url)
        bot.close()
        return bot

    run(main())


def test_a_client_of_a_blocking_connection(bots):
    """It uses the connection's loop: a call that waits drives both."""
    with sync.Spreadbot(bots.url, access_token="good") as bot:
        bot.establish_connection("echo")
        taken = []
        takes = threading.Thread(target=lambda: taken.extend(message.text for message in bot))
        takes.start()
        for number in range(10):
            assert bot.rest.get_data("secret").json() == {"secret": 42}
            bot.send_message_string(str(number))
        bot.close_connection()
        takes.join(30)
        assert taken == [str(number) for number in range(10)]
        rest = bot.rest
        assert rest.get_data("secret").is_success and rest.access_token == "good"
    with pytest.raises(librealtime.InvalidState):
        rest.get_data("secret")


def test_the_connection_is_gone(bots):
    bot = sync.Spreadbot(bots.url, access_token="good")
    rest = bot.rest
    with pytest.warns(ResourceWarning):
        del bot
        gc.collect()
    # It continues with its token; nothing refreshes it any more.
    assert rest.get_data("secret").is_success
    with pytest.raises(librealtime.InvalidState):
        rest.set_tokens("x")
    rest.close()


def test_it_ends_with_its_loop(run, bots):
    rest = SpreadbotREST(bots.url, access_token="good")

    async def first():
        await rest.get_data("secret")

    async def second():
        with pytest.raises(librealtime.InvalidState, match="asyncio"):
            await rest.get_data("secret")
        await rest.aclose()

    run(first())
    run(second())


def test_messages_left_in_an_outbox_do_not_hold_up_posts(bots, tmp_path):
    network = librealtime.Reachability("manual")
    network.set_online(False)
    options = {"outbox": tmp_path / "outbox", "access_token": "good"}
    with sync.Spreadbot(bots.url, reachability=network, **options) as bot:
        bot.establish_connection("room", wait=False)
        bot.send_nowait("left")
    with sync.SpreadbotREST(bots.url, **options) as rest:
        assert rest.post_data("things", 1).status_code == 201
    assert bots.posts.get(timeout=30)[1] == b"1"


def test_an_outbox_outlives_the_posting_process(run, bots, tmp_path):
    network = librealtime.Reachability("manual")
    network.set_online(False)
    options = {"outbox": tmp_path / "outbox", "access_token": "good"}

    async def main():
        async with SpreadbotREST(bots.url, reachability=network, **options) as rest:
            with pytest.raises(librealtime.InvalidArgument, match="timeout"):
                await rest.post_data("things", 1, timeout=1)
            with pytest.raises(librealtime.InvalidArgument):
                await rest.post_data("things", float("nan"))
            posts = [asyncio.ensure_future(rest.post_data("things", each)) for each in (1, "2")]
            await asyncio.sleep(0)
            posts[1].cancel()
        with pytest.raises(librealtime.ConnectionClosedError):
            await posts[0]
        async with SpreadbotREST(bots.url, **options) as rest:
            assert (await rest.post_data("things", b"3")).json() == {"stored": True}
            with pytest.raises(librealtime.HTTPStatusError) as caught:
                await rest.post_data("forbidden", 4)
            assert caught.value.response.status_code == 403

    run(main())
    with sync.SpreadbotREST(bots.url, **options) as rest:
        assert rest.post_data("things", [5]).status_code == 201
        with pytest.raises(librealtime.HTTPStatusError):
            rest.post_data("forbidden", 6)
    bodies = [bots.posts.get(timeout=30)[1] for _ in range(6)]
    assert bodies == [b"1", b"2", b"3", b"4", b"[5]", b"6"]
