"""NULL for each pointer of each function, one at a time, with valid arguments beside it: what the
model calls required is refused as NULL, and what it calls nullable is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from suite import ENVIRONMENT, SCRATCH, compile_c, expect, model, run, server

#: Valid texts, by function and parameter, by type of the handle and parameter, or by parameter.
TEXTS = {
    "rt_websocket.url": "ws://127.0.0.1:1/",
    "rt_websocket_new.url": "ws://127.0.0.1:1/",
    "rt_ddp_new.url": "ws://127.0.0.1:1/websocket",
    "url": "http://127.0.0.1:1/",
    "base_url": "http://127.0.0.1:1/",
    "origin": "http://127.0.0.1:1",
    "rt_websocket.name": "X-Name",
    "rt_network_add_resolve.host": "localhost",
    "address": "127.0.0.1",
    "pin": "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "method": "GET",
    "path": "/path",
    "key": "demo",
    "channel": "news",
    "rt_pusher_subscribe_with.channel": "private-b",
    "rt_pusher_authorization_answer_channel.channel": "private-a",
    "rt_pusher_channel_trigger.event": "client-a",
    "json": "{}",
    "shared_secret": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "collection": "players",
    "selector": "{}",
    "options": "{}",
    "document": "{}",
    "params": "[]",
    "publications": "[]",
    "modifier": '{"$set":{"a":1}}',
    "id": '"a"',
    "writes": '[{"remove":"players","id":"a"}]',
    "schema": '[{"name":"Player"}]',
    "model": "Player",
    "changes": '[{"delete":"Player","id":"a"}]',
    "rt_ddp_stub.value": "null",
    "details": "{}",
    "profile": "{}",
}
#: Parameters that are passed as NULL together with this one: a password needs a user.
WITH = {"password": "user_name"}
#: NULL with a length: the first returns its argument, the second removes the body.
LENGTH_IGNORED = {"rt_status_message", "rt_eventsource_set_body"}
#: Other arguments than 1.
NUMBERS = {
    "timeout_ms": "0",
    "length": "2",
    "count": "1",
    "size": "sizeof room",
    "rt_websocket_close.code": "1000",
    "rt_pusher_set_encryption_master_key.length": "32",
    "rt_rest_request_set_body_source.length": "-1",
    "rt_loop_get_statistics.size": "sizeof(rt_loop_statistics)",
    "rt_websocket_get_statistics.size": "sizeof(rt_websocket_statistics)",
    "compression": "RT_COMPRESSION_AUTOMATIC",
    "transport": "RT_SPREADBOT_TRANSPORT_WEBSOCKET",
}
#: Their creation ends the time in which options can be set.
PARTS = {"rt_pusher_channel", "rt_ddp_feed", "rt_ddp_models"}
#: These run a loop's callbacks, which a callback of that loop cannot do.
IN_CALLBACKS = {"rt_ddp_stub", "rt_pusher_authorization"}


class Cases:
    def __init__(self) -> None:
        self.model = model()
        self.handles = {handle["name"] for handle in self.model["handles"]}
        self.callbacks = {callback["name"] for callback in self.model["callbacks"]}
        self.enums = {e["alias"]: e["constants"][0]["name"] for e in self.model["enums"]}

    def program(self) -> Iterator[str]:
        yield '#include "null_objects.h"'
        for callback in self.model["callbacks"]:
            if callback["name"] == "rt_destroy_fn":
                continue
            parameters = ", ".join(declared(p["type"], p["name"]) for p in callback["parameters"])
            unused = " ".join(f"(void){p['name']};" for p in callback["parameters"])
            result = spelled(callback["result"])
            value = "" if result == "void" else " return 0;"
            yield f"static {result} on_{callback['name']}({parameters}) {{ {unused}{value} }}"
        groups: dict[str, list[str]] = {}
        for function in self.model["functions"]:
            first = function["parameters"][0]["type"]["base"] if function["parameters"] else ""
            group = first if first in IN_CALLBACKS else "any"
            for index, parameter in enumerate(function["parameters"]):
                if "pointer" in parameter:
                    groups.setdefault(group, []).append(self._case(function, index))
        for group, cases in groups.items():
            for index, case in enumerate(cases):
                yield f"static void {group}_{index}(objects *o) {{\n{case}}}"
            names = ", ".join(f"{group}_{index}" for index in range(len(cases)))
            yield f"static void (*const cases_{group}[])(objects *) = {{{names}}};"
        yield '#include "null_main.h"'

    def _case(self, function: dict[str, Any], null: int) -> str:
        name = function["name"]
        parameters = function["parameters"]
        parameter = parameters[null]
        arguments = [self._argument(name, index, parameters) for index in range(len(parameters))]
        arguments[null] = "NULL"
        head = "  char room[4096];\n  (void)room;\n  (void)o;\n"
        if parameters[0]["type"]["base"] in PARTS:
            head += "  create_parts(o);\n"
        if function["result"]["base"] not in ("rt_status", "int32_t"):
            cast = "" if function["result"]["base"] == "void" else "(void)"
            return f"{head}  {cast}{name}({', '.join(arguments)});\n"
        names = [p["name"] for p in parameters]
        place = f'"{name}", "{parameter["name"]}"'
        body = head
        length = (parameter.get("buffer") or {}).get("length")
        is_nullable = parameter["type"]["nullable"]
        if is_nullable and length in names and parameter["type"]["pointers"] == 1:
            # Required unless the length is 0.
            if name not in LENGTH_IGNORED:
                body += f"  required({name}({', '.join(arguments)}), {place});\n"
            arguments[names.index(length)] = "0"
        if name.endswith("_set_basic_auth") and parameter["name"] in WITH:
            arguments[names.index(WITH[parameter["name"]])] = "NULL"
        kind = "nullable" if is_nullable else "required"
        return f"{body}  {kind}({name}({', '.join(arguments)}), {place});\n"

    def _argument(self, function: str, index: int, parameters: list[Any]) -> str:
        parameter = parameters[index]
        name, kind, role = parameter["name"], parameter["type"], parameter["role"]
        base, pointers = kind["base"], kind["pointers"]
        first = parameters[0]["type"]["base"]
        keys = (f"{function}.{name}", f"{first}.{name}", name)
        if role in ("user", "destroy"):
            return "NULL"
        if role == "callback":
            return f"on_{base}"
        if role == "output":
            following = parameters[index + 1]["name"] if index + 1 < len(parameters) else ""
            is_text = base == "char" and pointers == 1 and following == "size"
            return "room" if is_text else f"({spelled(kind)})(void *)room"
        if base in self.handles and pointers == 1:
            return "NULL" if function.endswith("_free") else f"o->{base}"
        if base == "char" and pointers == 1:
            text = next((TEXTS[key] for key in keys if key in TEXTS), "ab")
            return '"' + text.replace('"', '\\"') + '"'
        if base == "uint8_t" and pointers == 1:
            return '(const uint8_t *)"0123456789abcdef0123456789abcdef"'
        if base == "int32_t" and pointers == 1:
            return "&a_transport"
        if pointers == 1:
            return "NULL" if function.endswith("_free") else f"&a_{base}"
        number = next((NUMBERS[key] for key in keys if key in NUMBERS), None)
        return number or self.enums.get(base, "1")


def spelled(kind: dict[str, Any]) -> str:
    return f"{'const ' if kind['constant'] else ''}{kind['base']} {'*' * kind['pointers']}".strip()


def declared(kind: dict[str, Any], name: str) -> str:
    return f"{spelled(kind)} {name}"


def test_null_for_each_pointer() -> None:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    source = SCRATCH / "every_null.c"
    source.write_text("\n".join(Cases().program()) + "\n")
    program = compile_c(source)
    with server("contract_pusher") as pusher:
        output = run([program, pusher], cwd=SCRATCH, env=ENVIRONMENT)
    expect(output == "", output)
