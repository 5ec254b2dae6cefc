"""The library refuses id files that it did not write, and leaves them unchanged."""

import os
import pathlib

from eventsource_store_tests import FIRST_LINE, numbered
from harness import expect
from librealtime import ErrorEvent, StoreError
from watch import watching


async def refused(path: pathlib.Path, why: str) -> None:
    """The error is reported once, the stream continues, and there is no new file afterwards."""
    before = sorted(entry.name for entry in path.parent.iterdir())
    async with watching(numbered, id_file=path, store_key="k") as (watch, server):
        error = await watch.error()
        expect(isinstance(error.error, StoreError) and not error.fatal, f"{error}")
        expect(why in error.error.message, f"{why!r}: {error.error.message}")
        await watch.data("1", "2", "3")
        # Until the next stream, an id would have been written.
        watch.source.restart()
        await watch.data("4", "5", "6")
        expect(len(watch.states) == 1, "reported again")
        expect("last-event-id" not in server.request().headers, "an id was sent")
    after = sorted(entry.name for entry in path.parent.iterdir())
    expect(after == before, f"{after}, before {before}")


async def test_linked(path: pathlib.Path) -> None:
    """A symbolic link is refused wherever it leads: to one of our files or to a missing one."""
    target = path.with_name("target")
    for content in (None, FIRST_LINE + "k 1\n", "mine"):
        if content is not None:
            target.write_text(content)
        path.symlink_to("target")
        await refused(path, "symbolic link")
        expect(path.is_symlink(), "the link was replaced")
        expect((target.read_text() if target.exists() else None) == content, "it was written")
        path.unlink()
        target.unlink(missing_ok=True)
    # A link in place of the lock file, which another process of the library would create.
    path.with_name("ids.lock").symlink_to("target")
    await refused(path, "symbolic link")
    expect(not target.exists(), "a lock was made elsewhere")


async def test_foreign(path: pathlib.Path) -> None:
    first = FIRST_LINE + "k 1\n"
    for content in ("dear diary\n", "\n", "x" * (1 << 20), first.replace("ids 1", "ids 2")):
        path.write_text(content)
        await refused(path, "was not written by librealtime")
        expect(path.read_text() == content, "it was written")
    for mode in (0o620, 0o602, 0o666):
        path.write_text(first)
        path.chmod(mode)
        await refused(path, f"mode {mode:o}")
        expect(path.read_text() == first, "it was written")
        expect(path.stat().st_mode & 0o777 == mode, "its mode was changed")
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
        await refused(path, "another user")
        expect(path.read_text() == first and path.stat().st_uid == 12345, "it was replaced")
        path.unlink()
        lock = path.with_name("ids.lock")
        lock.touch(0o600)
        os.chown(lock, 12345, -1)
        await refused(path, "the lock of")


async def test_file_in_the_way(path: pathlib.Path) -> None:
    left = path.with_name("ids.new")
    left.write_text("mine")
    async with watching(numbered, id_file=path, store_key="k") as (watch, _):
        # The error comes between the events or after them.
        while not isinstance(error := await watch.next(), ErrorEvent):
            pass
        expect(isinstance(error.error, StoreError), f"{error}")
        expect("ids.new exists and is not its" in error.error.message, error.error.message)
    expect(left.read_text() == "mine" and not path.exists(), "it was replaced")
