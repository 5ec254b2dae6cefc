"""Prints a C function for each function of the C interface, which calls it with random arguments.

It reads the interface from include/realtime.abi.json, so new functions are called without further
work. If no rule here covers an argument, the generator stops with the name of its function.

The output needs `calls.h` before it, which draws values and keeps handles. It defines:

- `on_TYPE` for each type of callback: it checks its user data, reads all its arguments, and may
make calls itself;
- `call_FUNCTION(caller)` for each function;
- `FUNCTIONS`, a table of them, with the properties that programs need; the same for handles.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "include" / "realtime.abi.json"

#: Handles that only callbacks receive; they are not created or freed.
VIEWS = {"rt_rest_response": "response", "rt_ddp_stub": "stub"}
#: Callbacks that must not call the library, or not use other objects: two run with a lock.
SHELTERED = {"rt_ddp_stub_fn", "rt_ddp_load_token_fn", "rt_thread_fn"}
#: Handles that a callback owns.
GIVEN = {"rt_pusher_authorization"}
#: Callbacks that receive many messages in one buffer, with the names of both arguments.
BATCHES = {
    "rt_websocket_messages_fn": ("base", "messages", "read_messages"),
    "rt_pusher_events_fn": ("base", "events", "read_events"),
}
#: Structs that calls return in the caller's memory; `STRUCT_free` frees them.
RECEIVED = {"rt_received", "rt_event", "rt_pusher_event"}
RECEIVED |= {"rt_received_batch", "rt_event_batch", "rt_pusher_batch", "rt_ddp_batch"}
#: Texts for certain parameter names; all others are drawn from `TEXTS`.
TEXT_KINDS = {
    "url": "URLS",
    "base_url": "URLS",
    "method": "METHODS",
    "reason": "REASONS",
    "address": "ADDRESSES",
    "host": "ADDRESSES",
    "hosts": "ADDRESSES",
    "event": "EVENTS",
    "name": "NAMES",
    "channel": "CHANNELS",
    "params": "EJSONS",
    "document": "OBJECTS",
    "selector": "OBJECTS",
    "options": "OBJECTS",
    "modifier": "OBJECTS",
    "publications": "EJSONS",
    "writes": "WRITES",
    "schema": "SCHEMAS",
    "model": "MODELS",
    "changes": "MODEL_CHANGES",
    "id": "DOCUMENT_IDS",
    "value": "EJSONS",
    "details": "EJSONS",
    "profile": "OBJECTS",
}
PATH_NAMES = {"path", "certificate", "key"}
#: Numbers that are not enums, each with an expression that draws one.
NUMBERS = {
    "int32_t": "draw_i32(c)",
    "uint32_t": "draw_u32(c)",
    "int64_t": "draw_i64(c)",
    "uint64_t": "draw_id(c)",
    "uint16_t": "draw_u16(c)",
    "size_t": "draw_size(c)",
    "double": "draw_double(c)",
    "bool": "draw_bool(c)",
}


class Unknown(Exception):
    """No rule covers a function or a callback."""


class Generator:
    def __init__(self, model: dict[str, Any]) -> None:
        self.model = model
        self.handles = [handle["name"] for handle in model["handles"]]
        self.callbacks = [callback["name"] for callback in model["callbacks"]]
        self.structs = {struct["name"] for struct in model["structs"]}
        self.enums = {
            enum["alias"]: [constant["value"] for constant in enum["constants"]]
            for enum in model["enums"]
        }

    def print(self) -> None:
        print("/* Printed by generate.py. */")
        made = [handle for handle in self.handles if handle not in VIEWS]
        print("enum kind { " + ", ".join(f"KIND_{name}" for name in made) + ", KINDS };")
        print('_Static_assert((int)KINDS <= (int)MOST_KINDS, "calls.h has too few kinds");')
        print("static void free_handle(int kind, void *handle) {")
        for name in made:
            print(f"  if (kind == KIND_{name}) {name}_free(handle);")
        print("}")
        self._views()
        types = ", ".join(f"TYPE_{name}" for name in self.callbacks)
        print(f"enum {{ {types}, TYPES }};")
        print('_Static_assert((int)TYPES <= (int)MOST_CALLBACKS, "calls.h has too few types");')
        print("static const char *const TYPE_NAMES[TYPES] = {")
        for name in self.callbacks:
            print(f'  "{name}",')
        print("};")
        for callback in self.model["callbacks"]:
            if callback["name"] != "rt_destroy_fn":
                self._callback(callback)
        for function in self.model["functions"]:
            self._function(function)
        self._tables(made)

    # -- callbacks

    def _views(self) -> None:
        """Prints calls of every function that uses a response or a stub, while it is valid."""
        for base, view in VIEWS.items():
            users = [
                function["name"]
                for function in self.model["functions"]
                if function["parameters"] and function["parameters"][0]["type"]["base"] == base
            ]
            for name in users:
                print(f"static void call_{name}(struct caller *c);")
            print(f"static void read_{view}(struct caller *c, {base} *{view}) {{")
            print(f"  {base} *outer = c->{view};")
            if base == "rt_ddp_stub":
                # A stub may call itself.
                print("  if (outer) return;")
            print(f"  c->{view} = {view};")
            for name in users:
                print(f"  call_{name}(c);")
            print(f"  c->{view} = outer;")
            print("}")

    def _callback(self, callback: dict[str, Any]) -> None:
        name = callback["name"]
        parameters = callback["parameters"]
        listed = ", ".join(declaration(parameter) for parameter in parameters)
        result = spelled(callback["result"])
        print(f"static {result} on_{name}({listed}) {{")
        print(f"  struct caller *c = callback_begins(user, TYPE_{name});")
        for index, parameter in enumerate(parameters[:-1]):
            print(f"  {self._read(callback, parameters, index, parameter)}")
        if name not in SHELTERED:
            print("  acts(c);")
        value = self._result(callback)
        if value is not None:
            print(f"  {result} result = {value};")
        print("  callback_ends(c, user);")
        if value is not None:
            print("  return result;")
        print("}")

    def _read(
        self, callback: dict[str, Any], parameters: list[Any], index: int, parameter: Any
    ) -> str:
        """A statement that reads a callback's argument completely."""
        name, kind = parameter["name"], parameter["type"]
        follows = parameters[index + 1]
        has_length = follows["type"]["base"] == "size_t" and "length" in follows["name"]
        if kind["base"] in VIEWS:
            return f"if ({name}) read_{VIEWS[kind['base']]}(c, {name});"
        if kind["base"] in GIVEN:
            return f"keep(c, KIND_{kind['base']}, {name});"
        if kind["base"] in self.structs and callback["name"] not in BATCHES:
            return f"if ({name}) {{ {self._read_struct(name, kind['base'])} }}"
        if kind["pointers"] == 0 or kind["base"] in self.handles:
            return f"(void){name};"
        if kind["pointers"] == 2:
            return f'*{name} = "7";'
        if callback["name"] == "rt_rest_source_fn":
            return f"memset({name}, 7, capacity);"
        if batch := BATCHES.get(callback["name"]):
            base, messages, read = batch
            # The second argument has their bytes.
            return f"{read}({base}, {messages}, count);" if name == base else f"(void){messages};"
        if kind["pointers"] == 1 and kind["base"] in ("char", "uint8_t"):
            if has_length:
                return f"read_bytes({name}, {follows['name']});"
            if kind["base"] == "char":
                return f"read_text({name});"
        raise Unknown(f"{callback['name']}: no rule reads {name}")

    def _read_struct(self, name: str, base: str) -> str:
        """A statement that reads a view's texts and bytes."""
        fields = next(s["fields"] for s in self.model["structs"] if s["name"] == base)
        reads = []
        for field, following in zip(fields, [*fields[1:], None], strict=True):
            place, kind = f"{name}->{field['name']}", field["type"]
            if kind["base"] in VIEWS:
                reads.append(f"if ({place}) read_{VIEWS[kind['base']]}(c, {place});")
            elif (
                kind["pointers"]
                and kind["base"] in self.structs
                and (not following or not following["name"].endswith("count"))
            ):
                reads.append(f"if ({place}) {{ {self._read_struct(place, kind['base'])} }}")
            elif kind["pointers"] and following and following["name"].endswith("count"):
                size = f"{name}->{following['name']} * sizeof *{place}"
                reads.append(f"read_bytes({place}, {size});")
            elif kind["pointers"] and following and following["name"].endswith("length"):
                reads.append(f"read_bytes({place}, {name}->{following['name']});")
            elif kind["pointers"]:
                reads.append(f"read_text({place});")
        reads.append(f"read_bytes({name}, {name}->struct_bytes);")
        return " ".join(reads)

    def _result(self, callback: dict[str, Any]) -> str | None:
        base = callback["result"]["base"]
        if callback["name"] == "rt_rest_source_fn":
            return "draw_body(c, capacity)"
        if base == "void":
            return None
        if base == "char":
            return "draw_text(c, EJSONS)"
        if base in self.enums:
            return self._enum(base)
        if base == "bool":
            # Whether to continue: mostly true.
            return "!seldom(c, 6)"
        raise Unknown(f"{callback['name']}: no rule draws its result")

    # -- functions

    def _function(self, function: dict[str, Any]) -> None:
        name = function["name"]
        parameters = function["parameters"]
        before: list[str] = []
        after: list[str] = []
        arguments = [
            self._argument(function, index, parameter, before, after)
            for index, parameter in enumerate(parameters)
        ]
        print(f"static void call_{name}(struct caller *c) {{")
        for line in before:
            print(f"  {line}")
        call = f"{name}({', '.join(arguments)})"
        result = function["result"]
        print(f'  begin_call(c, "{name}");')
        if result["base"] == "void":
            print(f"  {call};")
        elif result["pointers"]:
            print(f"  {spelled(result)}result = {call};")
            length = "length" if any(p["name"] == "out_length" for p in parameters) else None
            if result["base"] == "char":
                after.insert(0, "read_text(result);")
            elif length:
                after.insert(0, "read_bytes(result, length);")
            elif name == "rt_rest_response_retain":
                after.insert(0, "rt_rest_response_free(result);")
            elif result["base"] in VIEWS:  # another thread may read it, too
                after.insert(0, "(void)result;")
            else:
                reads = self._read_struct("result", result["base"])
                after.insert(0, f"if (result) {{ {reads} }}")
        else:
            print(f"  int64_t result = (int64_t){call};")
            print(f'  note_result("{name}", result);')
        print("  end_call(c);")
        for line in after:
            print(f"  {line}")
        print("}")

    def _argument(
        self,
        function: dict[str, Any],
        index: int,
        parameter: Any,
        before: list[str],
        after: list[str],
    ) -> str:
        """An expression for an argument; adds the statements before and after the call to the
        lists."""
        whole = function["name"]
        parameters = function["parameters"]
        name, kind = parameter["name"], parameter["type"]
        base, pointers = kind["base"], kind["pointers"]
        if base in VIEWS and pointers == 1:
            view = f"c->{VIEWS[base]}"
            return f"{base}_retain({view})" if whole == f"{base}_free" else view
        if base in self.handles and pointers == 1:
            if whole == f"{base}_free":
                before.append(f"{base} *{name} = grab(c, KIND_{base});")
            else:
                before.append(f"{base} *{name} = take(c, KIND_{base});")
                after.append(f"give_back(c, KIND_{base}, {name});")
            return name
        if base in self.handles and pointers == 2:
            before.append(f"{base} *made = NULL;")
            after.append(f"keep(c, KIND_{base}, made);")
            return "draw_null(c) ? NULL : &made"
        if base in RECEIVED and (pointers == 2 or whole == f"{base}_free"):
            # No handle of this kind is kept.
            if whole == f"{base}_free":
                return "NULL"
            before.append(f"{base} *received = NULL;")
            after.append(f"if (received) {{ {self._read_struct('received', base)} }}")
            after.append(f"{base}_free(received);")
            return "draw_null(c) ? NULL : &received"
        if base in self.callbacks:
            if base == "rt_destroy_fn":
                return "destroyer(user)"
            return f"draw_null(c) ? NULL : on_{base}"
        if name == "user":
            owns = any(p["type"]["base"] == "rt_destroy_fn" for p in parameters)
            before.append(
                f"struct user *user = {f'new_user(c, call_{whole})' if owns else 'nobody()'};"
            )
            return "user"
        if base == "rt_pusher_event":
            return "draw_null(c) ? NULL : &the_event"
        if base == "rt_ddp_call_options":
            return "draw_null(c) ? NULL : &call_options[draw_bool(c)]"
        value = self._text_or_list(function, index, before)
        if value is None:
            value = self._output(function, index, before, after)
        if value is not None:
            return value
        if pointers == 0 and base in self.enums:
            return self._enum(base)
        if pointers == 0 and name == "timeout_ms":
            return "draw_wait(c)"
        if pointers == 0 and base in NUMBERS:
            return NUMBERS[base]
        raise Unknown(f"{whole}: no rule draws {name}")

    def _text_or_list(self, function: dict[str, Any], index: int, before: list[str]) -> str | None:
        """Arguments that are texts, bytes and lists, with their lengths."""
        whole = function["name"]
        parameters = function["parameters"]
        name, kind = parameters[index]["name"], parameters[index]["type"]
        base, pointers = kind["base"], kind["pointers"]
        previous = parameters[index - 1]["name"] if index else ""
        following = parameters[index + 1]["name"] if index + 1 < len(parameters) else ""
        if pointers == 1 and base in ("char", "uint8_t"):
            if not kind["constant"]:
                before.append("char room[256];")
                return "draw_null(c) ? NULL : room"
            if following == "length":
                before.append("struct bytes bytes = draw_bytes(c);")
                return f"(const {base} *)bytes.data"
            if base == "char":
                if name in PATH_NAMES and "request" not in whole and "rt_spreadbot" not in whole:
                    return "draw_text(c, PATHS)"
                if name == "path":
                    return "draw_text(c, TARGETS)"
                return f"draw_text(c, {TEXT_KINDS.get(name, 'TEXTS')})"
        if pointers == 1 and name == "transports":
            before.append("int32_t transports[4];")
            before.append("size_t count = draw_transports(c, transports);")
            return "transports"
        if name == "count" and previous == "transports":
            return "count"
        if pointers == 0 and name == "length" and base == "size_t":
            return "bytes.length"
        return None

    def _output(
        self, function: dict[str, Any], index: int, before: list[str], after: list[str]
    ) -> str | None:
        """Arguments that the function writes to, and their sizes."""
        whole = function["name"]
        parameters = function["parameters"]
        name, kind = parameters[index]["name"], parameters[index]["type"]
        base, pointers = kind["base"], kind["pointers"]
        if pointers == 0 and name == "size" and index:
            if parameters[index - 1]["type"]["base"] in self.structs:
                return "draw_null(c) ? 0 : sizeof out / (draw_bool(c) ? 1 : 2)"
            return "draw_null(c) ? 0 : sizeof room"
        if pointers == 1 and base in self.structs and name == "out":
            before.append(f"{base} out;")
            return "draw_null(c) ? NULL : &out"
        if pointers == 2 and base == "char":
            before.append("const char *text = NULL;")
            after.append("if (text) read_bytes(text, length);")
            return "draw_null(c) ? NULL : &text"
        if pointers == 1 and name == "out_length":
            before.append("size_t length = 0;")
            if whole in ("rt_rest_response_body", "rt_rest_response_headers"):
                return "&length"
            return "draw_null(c) ? NULL : &length"
        if pointers == 1 and not kind["constant"]:
            before.append(f"{base} number = 0;")
            after.append("note_id(c, (uint64_t)number);")
            return "draw_null(c) ? NULL : &number"
        return None

    def _enum(self, base: str) -> str:
        values = self.enums[base]
        return f"draw_enum(c, {min(values)}, {max(values)})"

    # -- tables

    def _tables(self, made: list[str]) -> None:
        print("static const struct function FUNCTIONS[] = {")
        for function in self.model["functions"]:
            parameters = function["parameters"]
            first = parameters[0]["type"] if parameters else {"base": "", "pointers": 0}
            of = first["base"] if first["base"] in made and first["pointers"] == 1 else None
            kind = f"KIND_{of}" if of else "KINDS"
            words = function["name"].removeprefix(of or "").split("_")
            is_setter = any(word in ("set", "on", "add", "clear", "remove") for word in words)
            takes_user = any(p["type"]["base"] == "rt_destroy_fn" for p in parameters)
            print(
                f'  {{"{function["name"]}", call_{function["name"]}, {kind},'
                f" {c_bool(is_setter)}, {c_bool(takes_user)}}},"
            )
        print("};")
        print("static bool is_shared(int kind) {")
        users = [function for function in self.model["functions"] if function["thread"] == "one"]
        alone = {function["parameters"][0]["type"]["base"] for function in users}
        for name in sorted(alone - VIEWS.keys()):
            print(f"  if (kind == KIND_{name}) return false;")
        print("  return true;")
        print("}")


def spelled(kind: dict[str, Any]) -> str:
    constant = "const " if kind["constant"] else ""
    return f"{constant}{kind['base']}{' ' + '*' * kind['pointers'] if kind['pointers'] else ''}"


def declaration(parameter: dict[str, Any]) -> str:
    kind = spelled(parameter["type"])
    return f"{kind}{'' if kind.endswith('*') else ' '}{parameter['name']}"


def c_bool(value: bool) -> str:
    return "true" if value else "false"


def main() -> int:
    try:
        Generator(json.loads(MODEL.read_text())).print()
    except Unknown as reason:
        print(reason, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
