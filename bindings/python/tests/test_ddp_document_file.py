"""Documents of a Meteor client that outlive the process."""

from __future__ import annotations

import pytest
from meteor import FACES, Heard, do, opened

import librealtime
from librealtime import StoreError, sync


@pytest.mark.parametrize("face", FACES)
def test_documents_are_kept_between_runs(run, app, face, tmp_path):
    async def main():
        options = {"document_file": str(tmp_path / "documents")}
        app.control.remove("players", "c")
        async with opened(face, app, **options) as client:
            await do(client.subscribe, "all")
            names = {player["name"] for player in client.collection("players").find()}
            assert not client.has_stale_documents
        heard = Heard()
        client = face(app.url, on_current=lambda: heard("current"), **options)
        try:
            players = client.collection("players")
            assert {player["name"] for player in players.find()} == names
            assert client.has_stale_documents
            await do(client.connect)
            await do(client.subscribe, "all")
            assert await heard.next() == "current" and not client.has_stale_documents
            assert {player["name"] for player in players.find()} == names
        finally:
            client.close()

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_files_of_others_are_refused(run, app, face, tmp_path):
    async def main():
        file = tmp_path / "documents"
        file.write_text("mine\n")
        client = face(app.url, document_file=str(file))
        with pytest.raises(StoreError, match="was not written by librealtime"):
            await do(client.connect)
        client.close()
        assert file.read_text() == "mine\n"

    run(main())


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_damaged_file_is_logged(app, tmp_path, caplog, is_cut):
    file = tmp_path / "documents"
    with sync.DDPClient(app.url, document_file=file) as client:
        client.subscribe("all")
    kept = bytearray(file.read_bytes())
    kept[len(kept) // 2] ^= 1
    file.write_bytes(b"" if is_cut else kept)
    librealtime.set_log_level("WARNING")
    try:
        with sync.DDPClient(app.url, document_file=file) as client:
            assert not client.has_stale_documents and not client.collection("players").find()
    finally:
        librealtime.set_log_level(None)
    assert "the client starts without documents" in caplog.text
