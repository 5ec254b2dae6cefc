"""Users of a Meteor server."""

from __future__ import annotations

import asyncio

import pytest
from meteor import FACES, NOWHERE, Heard, do, opened

import librealtime
from librealtime import DDPError


@pytest.fixture(autouse=True)
def no_limit(app):
    app.control.settings(logins=0)


def name_for(face, name):
    """A user name for one of the faces, which share a server."""
    return f"{name}-{face.__module__.rpartition('.')[2]}"


@pytest.mark.parametrize("face", FACES)
def test_users_stay_logged_in(run, app, face, tmp_path):
    async def main():
        options = {"token_file": str(tmp_path / "tokens")}
        users = Heard()
        name = f"ada-{face.__module__.rpartition('.')[2]}"
        async with opened(face, app, on_user=users, **options) as client:
            made = await do(client.create_user, "secret", name=name, email=f"{name}@example.org")
            assert client.user_id == made["id"] == await users.next() and not client.is_logging_in
            await do(client.change_password, "secret", "new")
            await do(client.forgot_password, f"{name}@example.org")
            await do(client.log_out_others)
            async with opened(face, app, **options) as second:
                assert second.user_id == made["id"]
            await do(client.log_out)
            assert client.user_id is None
            await do(client.log_in, name, "new")
            with pytest.raises(DDPError):
                await do(client.log_in_with_token, "wrong")
            with pytest.raises(DDPError):
                await do(client.reset_password, "wrong", "new")
            with pytest.raises(DDPError):
                await do(client.verify_email, "wrong")
            with pytest.raises(DDPError):
                await do(client.log_in_by, "login", {"resume": "wrong"})

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_tokens_kept_by_the_program(run, app, face):
    async def main():
        kept = []
        options = {"store_token": kept.append, "load_token": lambda: kept[-1] if kept else None}
        async with opened(face, app, **options) as client:
            made = await do(
                client.create_user, "secret", name=f"bob-{face.__module__.rpartition('.')[2]}"
            )
        async with opened(face, app, **options) as client:
            assert client.user_id == made["id"]
            await do(client.log_out)
            assert kept[-1] is None

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_ways_to_log_in(run, app, face):
    async def main():
        name = name_for(face, "cid")
        email = f"{name}@example.org"
        user = app.control.user(username=name, email=email, password="secret", code="123")
        app.control.login_service(name, "yes", name)
        async with opened(face, app) as client:
            with pytest.raises(DDPError) as raised:
                await do(client.log_in, name, "secret")
            assert raised.value.code == "no-2fa-code"
            with pytest.raises(DDPError) as raised:
                await do(client.log_in, {"id": user}, "secret", "456")
            assert raised.value.code == "invalid-2fa-code" and client.user_id is None
            for who in (name, email, {"id": user}, {"username": name}, {"email": email}):
                made = await do(client.log_in, who, "secret", "123")
                assert made["id"] == client.user_id == user
                await do(client.log_out)
                assert client.user_id is None
            made = await do(client.log_in_by, "login", {name: "yes"})
            assert client.user_id == user
            again = await do(client.new_token)
            assert again["token"] != made["token"] and client.user_id == user
            client.reconnect()
            await do(client.connect)
            assert await do(client.call, "who") == user
            async with opened(face, app) as second:
                assert (await do(second.log_in_with_token, again["token"]))["id"] == user
                await do(second.log_out_others)
                assert second.user_id == user
            for wrong in ({}, {"id": user, "email": email}, {"name": name}):
                with pytest.raises(librealtime.InvalidArgument, match="user is a dict"):
                    await do(client.log_in, wrong, "secret")
            for wrong, kind in ((None, "None"), (5, "an int"), (b"ada", "a bytes")):
                with pytest.raises(TypeError, match=f"user is {kind}; a str or a dict is expected"):
                    await do(client.log_in, wrong, "secret")
            with pytest.raises(TypeError, match="id is an int; a str is expected"):
                await do(client.log_in, {"id": 5}, "secret")
            with pytest.raises(TypeError):
                await do(client.log_in, {"id": user}, b"secret")

    app.control.method("who", [{"op": "return", "value": {"$user": True}}])
    run(main())


@pytest.mark.parametrize("face", FACES)
def test_a_login_whose_result_names_no_user_fails(run, app, face):
    async def main():
        async with opened(face, app) as client:
            for result in ({"token": "t"}, {"id": 5, "token": "t"}, None, "u"):
                app.control.method("custom", [{"op": "return", "value": result}])
                with pytest.raises(DDPError, match="names no user") as raised:
                    await do(client.log_in_by, "custom")
                assert (raised.value.kind, raised.value.code) == ("server", "no-user")
                assert client.user_id is None and not client.is_logging_in
            app.control.method("custom", [{"op": "return", "value": {"id": "u"}}])
            assert await do(client.log_in_by, "custom") == {"id": "u"}
            assert client.user_id == "u"

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_a_known_user_is_logged_in_again_unnoticed(run, app, face):
    async def main():
        kept, seen = [], []
        options = {"store_token": kept.append, "load_token": lambda: kept[-1] if kept else None}
        async with opened(face, app, **options) as client:
            made = await do(client.create_user, "secret", name=name_for(face, "eve"))
            client.on_open = lambda: seen.append((client.user_id, client.is_logging_in))
            client.reconnect()
            await do(client.connect)
            # The login was sent before.
            await do(client.subscribe, "all")
        async with opened(face, app, **options) as client:
            seen.append((client.user_id, client.is_logging_in))
        assert seen == [(made["id"], False)] * 2

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_tokens_of_mails(run, app, face):
    async def main():
        name = name_for(face, "dan")
        email = f"{name}@example.org"
        async with opened(face, app) as client:
            made = await do(client.create_user, "old", name=name, email=email, profile={"shoe": 40})
            assert made["id"] == client.user_id
            await do(client.log_out)
            await do(client.forgot_password, email)
            (mail,) = [one for one in app.control.mails() if one["address"] == email]
            await do(client.reset_password, mail["token"], "new")
            assert client.user_id == made["id"]
            await do(client.change_password, "new", "newer")
            await do(client.log_out)
            app.control.verify(name, email)
            sent = [one for one in app.control.mails() if one["address"] == email][-1]
            assert (await do(client.verify_email, sent["token"]))["id"] == made["id"]
            await do(client.log_out)
            with pytest.raises(DDPError):
                await do(client.log_in, email, "new")
            await do(client.log_in, email, "newer")
            assert client.user_id == made["id"]
            with pytest.raises(DDPError):
                await do(client.change_password, "wrong", "newest")

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_errors_of_accounts(run, app, face):
    """The codes that the documentation of the methods names."""

    async def main():
        name = name_for(face, "fay")

        async def code(method, *arguments, **options):
            with pytest.raises(DDPError) as raised:
                await do(method, *arguments, **options)
            assert raised.value.kind == "server"
            return raised.value.code

        async with opened(face, app) as client:
            assert await code(client.change_password, "old", "new") == "401"
            assert "not logged in" in await code(client.new_token)
            assert "not logged in" in await code(client.log_out_others)
            await do(client.create_user, "secret", name=name)
            assert await code(client.create_user, "secret", name=name) == "403"
            assert await code(client.change_password, "wrong", "new") == "403"
            assert await code(client.log_in, name, "wrong") == "403"
            assert await code(client.log_in, {"id": "nobody"}, "secret") == "403"
            assert await code(client.log_in_with_token, "wrong") == "403"
            assert await code(client.forgot_password, "nobody@example.org") == "403"
            assert await code(client.reset_password, "wrong", "new") == "403"
            assert await code(client.verify_email, "wrong") == "403"
        client = face(NOWHERE, auto_reconnect=False)
        waiting = asyncio.ensure_future(do(client.log_out))
        while not client._pending:
            await asyncio.sleep(0.001)
        with pytest.raises(librealtime.ConnectFailed):
            await do(client.connect)
        with pytest.raises(DDPError) as raised:
            await waiting
        assert raised.value.kind == "disconnected"
        client.close()

    run(main())
