"""What functions that fetch credentials return, and what they raise."""

from __future__ import annotations

import asyncio

import pytest
from servers import raw_server, read_head
from wire import head_lines, read

import librealtime
from librealtime import EventSource, InvalidStatus, LongPoll, connect

REFUSAL = b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"


def test_credentials_with_a_header_twice(run):
    """All are sent, and those before are replaced."""
    heads = []

    def serve_one(connection):
        request = read_head(connection)
        heads.append([line for line in head_lines(request) if line.lower().startswith("x-a:")])
        connection.sendall(REFUSAL)

    async def main(url):
        options = {"additional_headers": {"X-A": "0"}, "credentials": lambda status: given}
        with pytest.raises(InvalidStatus):
            await connect(url, **options)

    for given in (
        [("X-A", "1"), ("x-a", "2"), ("X-A", "3")],
        [("X-A", "1")],
    ):
        heads.clear()
        with raw_server(serve_one, serve_one) as url:
            run(main(url))
        values = [line.partition(": ")[2] for line in heads[1]]
        assert heads[0] == ["X-A: 0"] and values == [value for _, value in given]


@pytest.mark.parametrize("answer", [5, "ab", ["ab"]], ids=repr)
def test_credentials_that_are_no_headers(run, answer):
    """The message names what is wrong, and no option."""

    async def main(url):
        with pytest.raises(librealtime.RealtimeError, match="what credentials returned is a"):
            await connect(url, credentials=lambda status: answer)

    def serve_one(connection):
        read_head(connection)
        connection.sendall(REFUSAL)

    with raw_server(serve_one) as url:
        run(main(url))


def test_what_credentials_raise_is_reported_alike(run, serve):
    """By each object, in the text and as the cause, and once."""

    def refuse(connection, number):
        while read(connection):
            connection.sendall(REFUSAL)

    def fail(*status):
        raise ValueError("vault is sealed")

    async def fail_later(*status):
        await asyncio.sleep(0)
        raise ValueError

    async def ask(url, credentials):
        options = {"credentials": credentials, "bearer_token": "old"}
        client = librealtime.RESTClient(url, **options)
        source, poll = EventSource(url, **options), LongPoll(url, **options)
        async with client, source, poll:
            for wait in (
                client.get("a"),
                source.recv(),
                poll.recv(),
                connect(url.replace("http", "ws"), **options)._connect(),
            ):
                with pytest.raises(librealtime.RealtimeError) as raised:
                    await wait
                said = "vault is sealed" if credentials is fail else "ValueError()"
                assert str(raised.value) == f"fetching credentials failed: {said}"
                assert isinstance(raised.value.__cause__, ValueError)

    async def main(url):
        told = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: told.append(context))
        for credentials in (fail, fail_later):
            await ask(url, credentials)
        assert told == []

    run(main(serve(refuse).url))
