"""`realtime ddp --watch`: the table on a terminal."""

import json
import os
import re
import signal
import unicodedata
from collections.abc import Callable

import pytest
from cli_ddp_tests import server
from command_line import INTERRUPTED, OTHER, REFUSED, USAGE, Terminal, Tool, ends
from ddp_server import DDPServer
from harness import PATIENCE_S, expect

__all__ = ["server"]


def last_drawing(screen: Terminal) -> str:
    """The last screen that was drawn as a whole."""
    whole, end, _ = screen.said.rpartition("\x1b[J")
    return whole.rpartition("\x1b[H")[2].replace("\r", "") if end else ""


def frame(screen: Terminal) -> list[str]:
    """Its lines."""
    return ["".join(cells(line)) for line in last_drawing(screen).split("\n")]


def cells(line: str, wide: int = 2) -> list[str]:
    """The cells of a line on a terminal; the second one of a wide character is empty.

    :param wide: how many columns the terminal thinks that wide characters take."""
    row: list[str] = []
    at = 0
    for column, character in re.findall(r"\x1b\[(?:K|(\d+)G)|([^\x1b])", line):
        count = width(character, wide)
        if column:
            at = int(column) - 1
            row += [" "] * (at - len(row))
        elif not character:
            del row[at:]
        elif count:
            row[at : at + count] = [character] + [""] * (count - 1)
            at += count
        else:
            row[at - 1] += character
    return row


def shows(screen: Terminal, condition: Callable[[list[str]], bool], what: str) -> list[str]:
    """Waits until the screen is like this."""
    screen.wait_until(lambda: condition(frame(screen)), what)
    return frame(screen)


def test_the_table_follows_the_documents(tool: Tool, server: DDPServer) -> None:
    arguments = ["ddp", server.http, "sub", "tasks", "--watch", "--sort", "-n"]
    with Terminal(tool, *arguments) as screen:
        table = ["tasks: 2 documents", "_id  text      n", "b    Sleep     2", "a    Buy milk"]
        shows(screen, lambda lines: lines == table, f"{table}")
        server.control.update("tasks", "a", {"$set": {"n": 3, "at": {"$date": 1_000_000_000_000}}})
        table = [
            "tasks: 2 documents",
            "_id  text      n  at",
            "a    Buy milk  3  2001-09-09T01:46:40Z",
            "b    Sleep     2",
        ]
        shows(screen, lambda lines: lines == table, f"{table}")
        server.control.remove("tasks", "b")
        shows(screen, lambda lines: lines[0] == "tasks: 1 document", "one document")
        screen.type("\x03")
        ends(screen.process, INTERRUPTED)
        screen.read_to_end()
    rest = screen.said.rpartition("\x1b[?1049l")[2].replace("\r", "")
    expect(rest.startswith("tasks: 1 document\n_id  text      n  at\na    Buy"), repr(rest))
    expect("\x1b[?25h\x1b[?1049l" in screen.said, "the cursor is hidden")


def test_the_table_fits_the_terminal(tool: Tool, server: DDPServer) -> None:
    server.control.update("tasks", "a", {"$set": {"text": "日本語" * 9, "z": "\x1b[2J\nz"}})
    server.control.insert("tasks", *({"_id": f"x{n}", "n": n} for n in range(30)))
    arguments = ["ddp", server.http, "sub", "tasks", "--watch", "--fields", "text,n,z"]
    with Terminal(tool, *arguments, rows=6, columns=40) as screen:
        lines = shows(screen, lambda lines: lines[0] == "tasks: 32 documents", "all documents")
        expect(len(lines) == 6 and lines[-1] == "… 29 more", f"{lines}")
        expect(lines[2].startswith("a    日本語") and "…" in lines[2], f"{lines}")
        expect(all(width(line) <= 40 for line in lines), f"{lines}")
        expect("\x1b[2J" not in screen.said, "a document controls the terminal")
        screen.resize(40, 120)
        lines = shows(screen, lambda lines: len(lines) == 34, "all documents")
        expect(lines[2] == f"a    {'日本語' * 9}      \\u{{1b}}[2J\\u{{a}}z", f"{lines[2]!r}")
        screen.resize(3, 9)
        lines = shows(screen, lambda lines: len(lines) == 3, "three lines")
        expect(all(width(line) <= 9 for line in lines), f"{lines}")
        screen.type("\x03")
        ends(screen.process, INTERRUPTED)
        screen.read_to_end()
    rest = screen.said.rpartition("\x1b[?1049l")[2]
    expect(rest.count("\n") == 2, f"more than the screen is left: {rest!r}")


def test_the_table_on_narrow_terminals(tool: Tool, server: DDPServer) -> None:
    server.control.update("tasks", "a", {"$set": {"text": "日本語" * 9}})
    with Terminal(tool, "ddp", server.http, "sub", "tasks", "--watch") as screen:
        shows(screen, lambda lines: lines[0] == "tasks: 2 documents", "the table")
        for columns in (12, 7, 5, 4, 3, 2, 1):
            screen.resize(4, columns)
            room = max(1, columns - 1)
            title = "tasks: 2 documents"[: room - 1] + "…"
            lines = shows(screen, lambda lines, title=title: lines[0] == title, f"{columns}")
            expect(len(lines) == 4, f"{columns} columns: {lines}")
            expect(all(width(line) <= room for line in lines), f"{columns} columns: {lines}")


def test_a_signal_when_the_terminal_is_stopped(tool: Tool, server: DDPServer) -> None:
    """It does not wait for Ctrl-Q, and gives the terminal's settings back."""
    with Terminal(tool, "ddp", server.http, "sub", "tasks", "--watch", echo=True) as screen:
        shows(screen, lambda lines: lines[0] == "tasks: 2 documents", "the table")
        expect(not screen.echoes, "it shows what is typed")
        screen.type("\x13")
        server.control.insert("tasks", {"_id": "c"})
        screen.process.send_signal(signal.SIGTERM)
        ends(screen.process, INTERRUPTED)
        expect(screen.echoes, "the terminal still does not echo")


def width(line: str, wide: int = 2) -> int:
    """How many columns a text takes. Marks belong to the character before them."""
    return sum(
        wide if unicodedata.east_asian_width(one) == "W" else unicodedata.category(one)[0] != "M"
        for one in line
    )


def test_the_table_tells_of_lost_connections(tool: Tool, server: DDPServer) -> None:
    with Terminal(tool, "ddp", server.http, "sub", "tasks", "--watch") as screen:
        shows(screen, lambda lines: lines[0] == "tasks: 2 documents", "the table")
        server.control.fault(point="handshake", do="status", code=503, times=None)
        server.control.end("reset")
        lines = shows(screen, lambda lines: "trying again in" in lines[0], "the loss")
        expect("Buy milk" in lines[2], f"{lines}")
        expect("realtime: " not in screen.said, "a remark in the table")
        server.control.clear()
        shows(screen, lambda lines: lines[0] == "tasks: 2 documents", "the table again")


def test_the_wait_for_the_next_attempt_counts_down(tool: Tool, server: DDPServer) -> None:
    with Terminal(tool, "ddp", server.http, "sub", "tasks", "--watch") as screen:
        shows(screen, lambda lines: lines[0] == "tasks: 2 documents", "the table")
        server.control.fault(point="handshake", do="status", code=503, times=None)
        server.control.end("reset")
        # The waits themselves only grow.
        screen.wait_until(
            lambda: "in 1 s: " in screen.said.partition("in 2 s: ")[2], "the wait counts down"
        )


def test_documents_of_another_collection(tool: Tool, server: DDPServer) -> None:
    server.control.publication("mine", cursors=[{"collection": "tasks"}])
    with Terminal(tool, "ddp", server.http, "sub", "mine", "--watch") as screen:
        hint = ["mine: 0 documents · others are in tasks; see --collection"]
        shows(screen, lambda lines: lines == hint, f"{hint}")


def test_without_a_terminal_the_table_is_lines(tool: Tool, server: DDPServer) -> None:
    arguments = ["sub", "tasks", "--watch", "--sort", "text", "--once"]
    told = tool.run("ddp", server.http, *arguments).stdout
    expect(told.startswith('added tasks a {"text":"Buy milk"}\n') and "\x1b" not in told, told)
    told = tool.run("ddp", server.http, *arguments, "--json").stdout
    expect(json.loads(told.splitlines()[2])["event"] == "added", told)


def test_the_table_pauses(tool: Tool, server: DDPServer) -> None:
    with Terminal(tool, "ddp", server.http, "sub", "tasks", "--watch") as screen:
        shows(screen, lambda lines: lines[0] == "tasks: 2 documents", "the table")
        screen.type("\x1a")
        screen.expect("\x1b[?25h\x1b[?1049l")
        os.waitid(os.P_PID, screen.process.pid, os.WSTOPPED | os.WNOWAIT)
        server.control.remove("tasks", "a")
        screen.process.send_signal(signal.SIGCONT)
        shows(screen, lambda lines: lines[0] == "tasks: 1 document", "the table again")
        expect(screen.said.count("\x1b[?1049h") == 2, "the second screen was not entered")


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_typing_does_not_disturb_the_table(tool: Tool, server: DDPServer, by: int) -> None:
    arguments = ["ddp", server.http, "sub", "tasks", "--watch"]
    with Terminal(tool, *arguments, echo=True) as screen:
        shows(screen, lambda lines: lines[0] == "tasks: 2 documents", "the table")
        expect(not screen.echoes, "it echoes")
        screen.process.send_signal(by)
        ends(screen.process, -by if by == signal.SIGQUIT else INTERRUPTED)
        expect(screen.echoes, "it does not echo any more")
        screen.expect("\x1b[?25h\x1b[?1049l")


def test_wide_characters_keep_the_columns(tool: Tool, server: DDPServer) -> None:
    texts = ["日本", "e\u0301\u0301", "❤\ufe0f", "👨\u200d👩\u200d👧", "🇩🇪", "\u202ex", "a\u2028b"]
    server.control.remove("tasks", "a")
    server.control.remove("tasks", "b")
    server.control.insert("tasks", *({"_id": f"{n}", "t": t} for n, t in enumerate(texts)))
    arguments = ["ddp", server.http, "sub", "tasks", "--watch", "--fields", "t"]
    with Terminal(tool, *arguments) as screen:
        lines = shows(screen, lambda lines: len(lines) == 9, "the table")
    shown = [line[5:] for line in lines[2:]]
    expect(shown == [*texts[:5], "\\u{202e}x", "a\\u{2028}b"], f"{shown}")
    server.control.update("tasks", "2", {"$set": {"z": 1}})
    arguments[-1] = "t,z"
    with Terminal(tool, *arguments) as screen:
        lines = shows(screen, lambda lines: len(lines) == 9, "the table")
    # The widest cell has ten columns.
    expect(cells(last_drawing(screen).split("\n")[4])[17] == "1", f"{lines[4]!r}")


@pytest.mark.parametrize("wide", [1, 2])
def test_columns_where_terminals_disagree(tool: Tool, server: DDPServer, wide: int) -> None:
    """Terminals do not agree on how many columns emoji and the like take."""
    texts = ["日本", "👨\u200d👩\u200d👧", "🇩🇪", "👍🏽 ok", "plain", "日" * 30]
    server.control.remove("tasks", "a")
    server.control.remove("tasks", "b")
    server.control.insert(
        "tasks", *({"_id": f"{n}", "t": t, "z": "|"} for n, t in enumerate(texts))
    )
    with Terminal(tool, "ddp", server.http, "sub", "tasks", "--watch", columns=40) as screen:
        shows(screen, lambda lines: len(lines) == 8, "the table")
        rows = [cells(line, wide) for line in last_drawing(screen).split("\n")[1:]]
        expect("\x1b[?7l" in screen.said, "a line that is too long would scroll the table")
        screen.type("\x03")
        ends(screen.process, INTERRUPTED)
        screen.read_to_end()
    expect(rows[0].index("z") == 38 and all(row.index("|") == 38 for row in rows[1:]), f"{rows}")
    expect(screen.said.rindex("\x1b[?7h") < screen.said.rindex("\x1b[?1049l"), screen.said)


def test_low_terminals_show_a_document(tool: Tool, server: DDPServer) -> None:
    arguments = ["ddp", server.http, "sub", "tasks", "--watch", "--fields", "text"]
    title = "tasks: 2 documents"
    with Terminal(tool, *arguments, rows=3) as screen:
        table = [title, "_id  text", "a    Buy milk"]
        shows(screen, lambda lines: lines == table, "a document")
        screen.resize(2, 80)
        shows(screen, lambda lines: lines == [title, "a  Buy milk"], "a document without names")
        screen.resize(1, 80)
        shows(screen, lambda lines: lines == [title], "the title")


def test_the_last_column_stays_empty(tool: Tool, server: DDPServer) -> None:
    """Erasing the rest of a full line erases its last character on many terminals."""
    server.control.update("tasks", "a", {"$set": {"text": "x" * 100}})
    arguments = ["ddp", server.http, "sub", "tasks", "--watch", "--fields", "text"]
    with Terminal(tool, *arguments, columns=30) as screen:
        lines = shows(screen, lambda lines: len(lines) == 4, "the table")
    expect(lines[2] == f"a    {'x' * 23}…", f"{lines}")


def test_nothing_is_left_of_a_table_that_never_came(tool: Tool, server: DDPServer) -> None:
    arguments = ["ddp", server.http, "sub", "unknown", "--watch"]
    with Terminal(tool, *arguments) as screen:
        screen.expect("Check the name of the publication.")
        ends(screen.process, REFUSED)
    expect("documents" not in screen.said.rpartition("\x1b[?1049l")[2], screen.said)


def test_what_the_table_waits_for(tool: Tool, server: DDPServer) -> None:
    server.control.fault(point="received", msg="connect", do="hold")
    server.control.fault(point="received", msg="sub", do="hold")
    with Terminal(tool, "ddp", server.http, "sub", "tasks", "--watch") as screen:
        shows(screen, lambda lines: lines == ["tasks: 0 documents · connecting"], "the attempt")
        server.control.wait_held(2)
        server.control.release(1)
        waiting = "tasks: 0 documents · waiting for the initial documents"
        shows(screen, lambda lines: lines == [waiting], "the connection")
        server.control.release(1)
        shows(screen, lambda lines: lines[0] == "tasks: 2 documents", "the documents")


def test_it_ends_with_its_terminal(tool: Tool, server: DDPServer) -> None:
    with Terminal(tool, "ddp", server.http, "sub", "tasks", "--watch") as screen:
        shows(screen, lambda lines: lines[0] == "tasks: 2 documents", "the table")
        screen.hang_up()
        code = screen.process.wait(PATIENCE_S)
    # Writing the table fails, before the signal or after it.
    expect(code in (OTHER, INTERRUPTED), f"exit code {code}")


def test_what_is_typed_is_not_left_to_the_shell(tool: Tool, server: DDPServer) -> None:
    with Terminal(tool, "ddp", server.http, "sub", "tasks", "--watch") as screen:
        shows(screen, lambda lines: lines[0] == "tasks: 2 documents", "the table")
        screen.type("rm -r *\n")
        screen.wait_for_unread(lambda count: count > 0)
        screen.process.send_signal(signal.SIGTERM)
        ends(screen.process, INTERRUPTED)
        expect(screen.unread == 0, "the shell would run it")


def test_terminals_that_cannot_draw_get_lines(tool: Tool, server: DDPServer) -> None:
    arguments = ["ddp", server.http, "sub", "tasks", "--watch", "--once"]
    dumb = {**tool.environment, "TERM": "dumb"}
    with Terminal(tool, *arguments, env=dumb) as screen:
        screen.expect('added tasks b {"text":"Sleep","n":2}')
        expect("\x1b" not in screen.said, screen.said)


def test_the_log_does_not_write_into_the_table(tool: Tool, server: DDPServer) -> None:
    with Terminal(tool, "ddp", server.http, "sub", "tasks", "--watch", "--verbose") as screen:
        screen.expect("--verbose would write into the table")
        ends(screen.process, USAGE)
