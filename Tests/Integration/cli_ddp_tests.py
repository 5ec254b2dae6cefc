"""`realtime ddp`: what it prints, logins, and how it ends."""

import json
import os
import pathlib
import resource
import signal
from typing import Any

import pytest
from command_line import (
    DONE,
    INTERRUPTED,
    LOST,
    OTHER,
    REFUSED,
    UNREACHABLE,
    USAGE,
    Terminal,
    Tool,
    ends,
    line_of,
    patiently,
    running,
)
from ddp_server import DDPServer
from harness import expect

RETURN_ID = {"op": "return", "value": {"$var": "id"}}


@pytest.fixture
def server(ddp_server: DDPServer) -> DDPServer:
    """A server with two tasks."""
    control = ddp_server.control
    control.collection("tasks")
    control.publication("tasks", cursors=[{"collection": "tasks"}])
    control.insert("tasks", {"_id": "a", "text": "Buy milk"}, {"_id": "b", "text": "Sleep", "n": 2})
    control.method("echo", [{"op": "return", "value": [{"$param": 0}, {"$param": 1}]}])
    control.method("who", [{"op": "userId", "save": "id"}, RETURN_ID])
    return ddp_server


def ready(server: DDPServer) -> None:
    """Waits until the tool has its documents."""
    server.control.wait(what="out", msg="ready")


def said_by(process: Any) -> str:
    said: bytes = process.stderr.read()
    return said.decode()


def test_changes_are_lines(tool: Tool, server: DDPServer) -> None:
    with running(tool, "ddp", server.http, "sub", "tasks", "--count", "5") as process:
        lines = [line_of(process), line_of(process)]
        expect(lines[0] == 'added tasks a {"text":"Buy milk"}', lines[0])
        expect(lines[1] == 'added tasks b {"text":"Sleep","n":2}', lines[1])
        change = {"$set": {"text": "Wake"}, "$unset": {"n": 1}}
        server.control.update("tasks", "b", change)
        line = line_of(process)
        expect(line == 'changed tasks b {"text":"Wake"} without n', line)
        server.control.remove("tasks", "a")
        expect(line_of(process) == "removed tasks a", "the removal")
        server.control.insert("tasks", {"_id": {"$type": "oid", "$value": "0" * 24}})
        line = line_of(process)
        expect(line == f"added tasks {'0' * 24} {{}}", line)
        ends(process, DONE)
        said = said_by(process)
    expect("connecting\n" in said and "connected\n" in said and "tasks is ready\n" in said, said)


def test_changes_are_objects(tool: Tool, server: DDPServer) -> None:
    with running(tool, "ddp", server.http, "sub", "tasks", "--json", "--count", "3") as process:
        ready(server)
        server.control.update("tasks", "b", {"$set": {"at": {"$date": 5}}, "$unset": {"n": 1}})
        ends(process, DONE)
        assert process.stdout is not None
        told = [json.loads(line) for line in process.stdout.read().splitlines()]
    kinds = [one["event"] for one in told]
    expect(kinds == ["status", "status", "added", "added", "ready", "changed"], f"{told}")
    expect(
        told[-1]
        == {
            "event": "changed",
            "collection": "tasks",
            "id": "b",
            "fields": {"at": {"$date": 5}},
            "cleared": ["n"],
        },
        f"{told[-1]}",
    )


def test_a_query_selects_and_orders(tool: Tool, server: DDPServer) -> None:
    server.control.insert("tasks", {"_id": "c", "n": 1}, {"_id": "d", "n": 3})
    query = ["--collection", "tasks", "--selector", '{"n":{"$gt":0}}', "--sort", "-n"]
    arguments = [*query, "--fields", "n", "--limit", "2", "--count", "4"]
    with running(tool, "ddp", server.http, "sub", "tasks", *arguments) as process:
        lines = [line_of(process), line_of(process)]
        expect(lines == ['added tasks d {"n":3}', 'added tasks b {"n":2}'], f"{lines}")
        ready(server)
        server.control.update("tasks", "b", {"$set": {"n": 9}})
        lines = [line_of(process), line_of(process)]
        expect(lines == ['changed tasks b {"n":9}', "moved tasks b before d"], f"{lines}")
        ends(process, DONE)


def test_documents_that_are_events(tool: Tool, server: DDPServer) -> None:
    """As Rocket.Chat's servers send them: the same id changes again and again, and is never added;
    two messages may be equal."""
    room: dict[str, Any] = {"msg": "changed", "collection": "room", "id": "id"}
    note = {"msg": "changed", "collection": "note", "id": "id", "cleared": ["n"]}
    messages = [{**room, "fields": {"args": [n // 2]}} for n in range(8)] + [note]
    streams = ["--stream", "room", "--stream", "note"]
    # With the two tasks.
    count = ["--count", str(len(messages) + 2)]
    for more in ([], ["--json"], ["--collection", "tasks"]):
        command = ["ddp", server.http, "sub", "tasks", *streams, *count, *more]
        log = server.control.log()
        with running(tool, *command) as process:
            server.control.wait(what="out", msg="ready", after=len(log))
            for message in messages:
                server.control.send(json.dumps(message))
            ends(process, DONE)
            assert process.stdout is not None
            lines = process.stdout.read().decode().splitlines()
        if "--json" in more:
            told = [json.loads(line) for line in lines]
            got = [one for one in told if one.get("collection") in ("room", "note")]
            wanted = [
                {"event": m["msg"], "fields": {}, **{k: v for k, v in m.items() if k != "msg"}}
                for m in messages
            ]
        else:
            got = [line for line in lines if " tasks " not in line]
            wanted = [f'changed room id {{"args":[{n // 2}]}}' for n in range(8)]
            wanted.append("changed note id {} without n")
        expect(got == wanted, f"{got}")


def test_once_ends_with_the_initial_documents(tool: Tool, server: DDPServer) -> None:
    told = tool.run("ddp", server.http, "sub", "tasks", "--once").stdout
    expect(told.count("added") == 2 and told.count("\n") == 2, told)


def test_calls_print_the_result(tool: Tool, server: DDPServer) -> None:
    def call(*arguments: str) -> str:
        return tool.run("ddp", server.http, "call", "echo", *arguments).stdout.rstrip("\n")

    expect(call("5", "true") == "[5,true]", "numbers and booleans")
    expect(call('{"$date":7}', '"5"') == '[{"$date":7},"5"]', "EJSON and a text in quotes")
    expect(call("Buy milk", "a{") == '["Buy milk","a{"]', "texts")
    expect(call("--", "-5", "--json") == '[-5,"--json"]', "after --")
    server.control.method("nothing", [])
    told = tool.json("ddp", server.http, "call", "nothing")
    expect(told[-1] == {"event": "result", "result": None}, f"{told}")


def test_refused_calls(tool: Tool, server: DDPServer) -> None:
    error = {"error": "no", "reason": "Never.", "details": {"at": 5}}
    server.control.method("refuse", [{"op": "throw", "error": error}])
    result = tool.run("ddp", server.http, "call", "refuse", status=REFUSED)
    host = server.http.removeprefix("http://")
    line = f'Calling refuse at {host} failed: Never. [no], details: {{"at":5}}.\n'
    expect(result.stdout == "" and line in result.stderr, f"{result}")
    told = tool.json("ddp", server.http, "call", "refuse", status=REFUSED)
    wanted = {"event": "error", "code": "no", "message": "Never.", "details": {"at": 5}}
    expect(told[-1] == wanted, f"{told}")


def test_errors_say_what_to_do(tool: Tool, server: DDPServer) -> None:
    server.control.method("check", [{"op": "check", "kinds": ["number"]}])
    server.control.method("crash", [{"op": "crash"}])
    server.control.method("denied", [{"op": "throw", "error": {"error": 403, "reason": "No"}}])
    host = server.http.removeprefix("http://")
    for arguments, begin, advice in [
        (["sub", "unknown"], f"Subscribing to unknown at {host} failed: ", "the publication."),
        (["call", "unknown"], f"Calling unknown at {host} failed: ", "the method."),
        (["call", "check", "a"], "Calling check at ", "'\"5\"' a text."),
        (["call", "crash"], "Calling crash at ", "The server's log has the cause."),
        (["call", "denied"], "Calling denied at ", "see --login."),
        (["call", "who", "--login", "ada:no"], f"Logging in at {host} failed: ", "the token."),
        (["call", "who", "--token", "no"], f"Logging in at {host} failed: ", "the token."),
    ]:
        said = tool.run("ddp", server.http, *arguments, status=REFUSED).stderr.splitlines()[-1]
        expect(said.startswith(f"realtime: {begin}") and said.endswith(advice), said)
        told = tool.json("ddp", server.http, *arguments, status=REFUSED)[-1]
        expect(told["event"] == "error" and told["advice"].endswith(advice), f"{told}")


def test_the_server_ends_subscriptions(tool: Tool, server: DDPServer) -> None:
    host = server.http.removeprefix("http://")
    for do, status in [("stop", DONE), ("error", REFUSED)]:
        after = len(server.control.log())
        with running(tool, "ddp", server.http, "sub", "tasks") as process:
            server.control.wait(what="out", msg="ready", after=after)
            server.control.publish("tasks", do)
            ends(process, status)
            if status != DONE:
                said = said_by(process)
                expect(f"The subscription to tasks at {host} has ended: " in said, said)


def test_passwords(tool: Tool, server: DDPServer) -> None:
    server.control.user(username="ada", password="s3cret")
    arguments = ["ddp", server.http, "call", "who", "--login", "ada", "--verbose"]
    result = tool.run(*arguments, text="s3cret\nanother line\n")
    expect(len(result.stdout) == len('"12345678901234567"\n'), result.stdout)
    expect("s3cret" not in result.stderr, "the password is in the log")
    said = tool.run(*arguments, text="wrong\n", status=REFUSED).stderr
    expect("[403]" in said, said)
    environment = {**tool.environment, "REALTIME_PASSWORD": "s3cret"}
    with running(tool, *arguments, env=environment) as process:
        expect(line_of(process) == result.stdout.rstrip(), "the user")
        ends(process, DONE)
    said = tool.run(*arguments, text="", status=USAGE).stderr
    expect("standard input has no password in its first line" in said, said)


def test_passwords_from_elsewhere(tool: Tool, server: DDPServer, tmp_path: pathlib.Path) -> None:
    server.control.user(username="ada", password="s3:cret")
    file = tmp_path / "password"
    file.write_text("s3:cret\n")
    user = tool.run("ddp", server.http, "call", "who", "--login", "ada:s3:cret").stdout
    expect(user != "null\n", user)
    [token] = server.control.tokens("ada")
    for arguments, text in [
        (["--login", "ada", "--password-file", str(file)], ""),
        (["--login", "ada", "--password-file", "-"], "s3:cret\n"),
        (["--token", token], ""),
        (["--token", "-"], f"{token}\n"),
    ]:
        found = tool.run("ddp", server.http, "call", "who", *arguments, text=text).stdout
        expect(found == user, f"{arguments}: {found}")


def test_the_prompt_shows_nothing(tool: Tool, server: DDPServer) -> None:
    server.control.user(username="ada", password="s3créé")
    with Terminal(tool, "ddp", server.http, "call", "echo", "1", "2", "--login", "ada") as screen:
        screen.expect("Password for ada: ")
        # Ctrl-U takes all back, and the delete key a character.
        screen.type("wrong\x15s3créüx\x7f\x7fé\n")
        screen.expect("[1,2]")
        ends(screen.process, DONE)
        expect("s3cr" not in screen.said and "wrong" not in screen.said, screen.said)
    expect(len(server.control.log(what="open")) == 1, "it connected before the password")


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_the_prompt_gives_the_terminal_back(tool: Tool, server: DDPServer, by: int) -> None:
    arguments = ["ddp", server.http, "call", "echo", "--login", "ada"]
    with Terminal(tool, *arguments, echo=True) as screen:
        screen.expect("Password for ada: ")
        expect(not screen.echoes, "the password is shown")
        if by == signal.SIGINT:
            screen.type("\x03")
        else:
            screen.process.send_signal(by)
        ends(screen.process, -by if by == signal.SIGQUIT else INTERRUPTED)
        expect(screen.echoes, "the terminal still does not echo")
    expect(server.control.log(what="open") == [], "it connected before the password")


def test_the_prompt_pauses(tool: Tool, server: DDPServer) -> None:
    server.control.user(username="ada", password="s3cret")
    arguments = ["ddp", server.http, "call", "echo", "1", "2", "--login", "ada"]
    with Terminal(tool, *arguments, echo=True) as screen:
        screen.expect("Password for ada: ")
        screen.type("wrong")
        screen.wait_for_unread(lambda count: count == 0)
        screen.type("\x1a")
        os.waitid(os.P_PID, screen.process.pid, os.WSTOPPED | os.WNOWAIT)
        expect(screen.echoes, "the shell does not show what is typed")
        screen.process.send_signal(signal.SIGCONT)
        screen.expect("\nPassword for ada: ")
        expect(not screen.echoes, "the password is shown")
        screen.type("s3cret\n")
        screen.expect("[1,2]")
        ends(screen.process, DONE)
        expect("s3cret" not in screen.said and "wrong" not in screen.said, screen.said)


def test_a_hangup_ends_it_unless_it_is_ignored(tool: Tool, server: DDPServer) -> None:
    with running(tool, "ddp", server.http, "sub", "tasks", prefix=["nohup"]) as process:
        line_of(process), line_of(process)
        process.send_signal(signal.SIGHUP)
        server.control.insert("tasks", {"_id": "c"})
        expect(line_of(process) == "added tasks c {}", "the next line")
    with running(tool, "ddp", server.http, "sub", "tasks") as process:
        line_of(process)
        after = len(server.control.log())
        process.send_signal(signal.SIGHUP)
        ends(process, INTERRUPTED)
    server.control.wait(what="in", msg="disconnect", after=after)


def test_the_login_is_kept(tool: Tool, server: DDPServer, tmp_path: pathlib.Path) -> None:
    server.control.user(username="ada", password="s3cret")
    arguments = ["ddp", server.http, "call", "who", "--token-file", str(tmp_path / "token")]
    nobody = tool.run(*arguments).stdout
    expect(nobody == "null\n", nobody)
    user = tool.run(*arguments, "--login", "ada", text="s3cret\n").stdout
    expect(tool.run(*arguments).stdout == user != nobody, "the login was not kept")
    server.control.remove_tokens("ada")
    tool.run(*arguments, status=REFUSED)
    arguments[-1] = str(tmp_path / "missing" / "token")
    said = tool.run(*arguments, status=OTHER).stderr
    expect(f"{arguments[-1]} cannot be opened: No such file or directory" in said, said)


def test_a_login_that_cannot_be_kept(tool: Tool, server: DDPServer, tmp_path: pathlib.Path) -> None:
    """The next command would need the password again: the result is there, and why it fails."""
    server.control.user(username="ada", password="s3cret")
    arguments = ["ddp", server.http, "call", "who", "--token-file", "token", "--login", "ada"]
    with running(
        tool,
        *arguments,
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    ) as process:
        output, said = process.communicate(b"s3cret\n")
        ends(process, OTHER)
    expect(output not in (b"", b"null\n"), repr(output))
    expect(b"the login is not kept for the next run: the token file token" in said, repr(said))
    expect(not (tmp_path / "token").exists(), "it was kept")


def test_it_reconnects_without_a_line(tool: Tool, server: DDPServer) -> None:
    with running(tool, "ddp", server.http, "sub", "tasks", "--count", "3") as process:
        line_of(process), line_of(process)
        ready(server)
        server.control.end("reset")
        server.control.wait(what="out", msg="ready", count=2)
        server.control.update("tasks", "a", {"$set": {"text": "new"}})
        expect(line_of(process) == 'changed tasks a {"text":"new"}', "the next line")
        ends(process, DONE)
        said = said_by(process)
    expect("; trying again in 0.01 s\n" in said, said)


def test_lost_connections(tool: Tool, server: DDPServer) -> None:
    server.control.method("held", [{"op": "hold"}])
    for arguments, held in [
        (["sub", "tasks", "--no-reconnect"], False),
        (["call", "held", "--no-reconnect"], True),
        (["call", "held", "--no-retry"], True),
    ]:
        after = len(server.control.log())
        with running(tool, "ddp", server.http, *arguments) as process:
            what = {"msg": "method"} if held else {"msg": "sub"}
            server.control.wait(what="in", after=after, **what)
            server.control.end("reset")
            ends(process, LOST)


def test_calls_have_a_time_limit(tool: Tool, server: DDPServer) -> None:
    server.control.method("held", [{"op": "hold"}])

    def check(limit: str) -> None:
        arguments = ["call", "held", "--max-time", limit]
        said = tool.run("ddp", server.http, *arguments, status=UNREACHABLE).stderr
        expect(said.count("may have run") == 1 and "[timeout]" in said, said)
        expect(said.endswith(". See --max-time.\n"), said)

    patiently(check)


def test_initial_documents_have_a_time_limit(tool: Tool, server: DDPServer) -> None:
    server.control.publication("endless", hold=True)
    host = server.http.removeprefix("http://")
    arguments = ["sub", "endless", "--once", "--max-time", "0.5"]
    said = tool.run("ddp", server.http, *arguments, status=UNREACHABLE).stderr
    fault = f"{host} has not sent all documents of endless within 0.5 s"
    expect(fault in said and said.endswith("; see --max-time.\n"), said)
    # In time: the limit does not end what follows.
    tool.run("ddp", server.http, "sub", "tasks", "--once", "--max-time", "30")


def test_interrupted(tool: Tool, server: DDPServer) -> None:
    with running(tool, "ddp", server.http, "sub", "tasks") as process:
        line_of(process)
        process.send_signal(signal.SIGINT)
        ends(process, INTERRUPTED)
    server.control.wait(what="in", msg="disconnect")


def test_arguments_are_checked(tool: Tool, server: DDPServer) -> None:
    for arguments in [
        ["sub"],
        ["get", "tasks"],
        ["sub", "tasks", "--selector", "{}"],
        ["sub", "tasks", "--limit", "1"],
        ["sub", "tasks", "--collection", "tasks", "--limit", "0"],
        ["sub", "tasks", "--collection", "tasks", "--sort", "a,,b"],
        ["sub", "tasks", "--collection", "tasks", "--selector", '{"a":{"$no":1}}'],
        ["sub", "tasks", "--max-time", "0"],
        ["sub", "tasks", "--no-retry"],
        ["sub", "tasks", "--count", "0"],
        ["sub", "tasks", "--code", "1"],
        ["sub", ""],
        ["sub", "tasks", "--login", ":secret"],
        ["sub", "tasks", "--login", "ada:"],
        ["sub", "tasks", "--login", "ada:a", "--token", "b"],
        ["sub", "tasks", "--login", "ada:a", "--password-file", "b"],
        ["sub", "tasks", "--password-file", "b"],
        ["sub", "tasks", "--token", ""],
        ["sub", "tasks", "--collection", "tasks", "--selector", '{"a":1'],
        ["call", "echo", "[1,"],
        ["call", "echo", '"a'],
        ["call", "echo", "--watch"],
        ["call", "echo", "--once"],
        ["call", "echo", "--collection", "tasks"],
        ["call", "echo", "--stream", "tasks"],
        ["sub", "tasks", "--stream", ""],
        ["sub", "tasks", "--stream", "tasks", "--collection", "tasks"],
        ["sub", "tasks", "--stream", "room", "--watch"],
    ]:
        tool.run("ddp", server.http, *arguments, status=USAGE)
    said = tool.run("ddp", server.http, "call", "echo", "1", "{a}", status=USAGE).stderr
    expect("Argument 2 begins with { and so must be EJSON: " in said, said)
    tool.run("ddp", "ftp://127.0.0.1", "sub", "tasks", status=USAGE)
