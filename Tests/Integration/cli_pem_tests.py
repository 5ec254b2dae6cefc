"""The command-line tool never shows PEM text that is given instead of the name of a file with it:
it may be a private key."""

import base64
import pathlib

import pytest
from command_line import USAGE, Tool
from harness import PATIENCE_S, expect

# A DER sequence, as a key is.
_BODY = base64.b64encode(bytes([0x30, 0x81, 196, *range(1, 197)])).decode()
_LINES = [_BODY[start : start + 64] for start in range(0, len(_BODY), 64)]
KEY = "\n".join(["-----BEGIN PRIVATE KEY-----", *_LINES, "-----END PRIVATE KEY-----"])
TEXTS = {
    "lines": KEY,
    "one line": KEY.replace("\n", "\\n"),
    "after a remark": f"Key:\n{KEY}\n",
    "without its first and last line": _BODY,
}
URL = "http://127.0.0.1:1/"
PUSHER = ["pusher", "--key", "k", "--host", "127.0.0.1", "--port", "1", "--no-tls"]
#: The options whose values are names of files, with what they need.
OPTIONS = [
    *(["get", URL, option] for option in ("--ca-file", "--certificate", "--bearer-file")),
    ["get", URL, "--certificate", "/dev/null", "--certificate-key"],
    ["get", URL, "--unix-socket"],
    ["get", URL, "--output"],
    ["post", URL, "--data-file"],
    ["sse", URL, "--id-file"],
    ["ddp", URL, "call", "a", "--token-file"],
    ["ddp", URL, "call", "a", "--login", "ada", "--password-file"],
    [*PUSHER, "private-a", "--secret-file"],
]


def refuses(tool: Tool, folder: pathlib.Path, *arguments: str) -> str:
    """Runs it, and returns what it says."""
    process = tool.start(*arguments, cwd=folder)
    output, said = process.communicate(timeout=PATIENCE_S)
    told = (output + said).decode()
    expect(process.returncode == USAGE, f"exit code {process.returncode}: {told}")
    for line in _LINES:
        for start in range(len(line) - 15):
            expect(line[start : start + 16] not in told, f"{arguments[:-1]} shows it: {told}")
    expect(not list(folder.iterdir()), f"it has made {list(folder.iterdir())}")
    return told


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_keys_that_are_no_file_names(tool: Tool, tmp_path: pathlib.Path, text: str) -> None:
    for *command, option in OPTIONS:
        said = refuses(tool, tmp_path, *command, f"{option}={text}")
        expect("PEM text" in said and "the name of a file" in said, said)
        # The parser of arguments takes a text with a hyphen for an option.
        said = refuses(tool, tmp_path, *command, option, text)
        expect("PEM text" in said and "the name of a file" in said, said)
    for command in (["post", URL, "-d"], [*PUSHER, "private-a", "--trigger", "client-a", "-d"]):
        said = refuses(tool, tmp_path, *command, f"@{text}")
        expect("PEM text" in said, said)
    told = refuses(tool, tmp_path, "get", URL, "--json", f"--ca-file={text}")
    expect('"code":"invalidArgument"' in told and "PEM text" in told, told)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_keys_where_nobody_expects_them(tool: Tool, tmp_path: pathlib.Path, text: str) -> None:
    for arguments in (
        ["get", text],
        ["get", URL, "--proxy", text],
        ["get", URL, f"--proxy={text}"],
        ["get", URL, f"--resolve={text}"],
        ["get", URL, f"--timeout={text}"],
        ["get", URL, f"--header={text.replace(':', '')}"],
        ["listen", URL, f"--transports={text}"],
        ["ddp", URL, text, "a"],
        [*PUSHER, text],
        # Without the quotes of a shell.
        ["get", URL, "--certificate", *text.split()],
    ):
        refuses(tool, tmp_path, *arguments)
