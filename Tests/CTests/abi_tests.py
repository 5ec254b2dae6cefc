"""Header, model, ctypes table and exported symbols agree, and every name can be used."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from types import ModuleType
from typing import Any

from suite import INCLUDE, LIBRARY, ROOT, SCRATCH, compile_c, expect, model, run


def header() -> str:
    """The header without comments and preprocessor lines."""
    text = (INCLUDE / "realtime.h").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"^#.*$", "", text, flags=re.MULTILINE)


def header_functions() -> dict[str, int]:
    """The header's function names and their numbers of parameters."""
    functions = {}
    for statement in header().split(";"):
        match = re.search(r"\b(rt_\w+)\(([^()]*)\)\s*$", statement)
        if match and "typedef" not in statement:
            parameters = match[2].strip()
            functions[match[1]] = 0 if parameters == "void" else parameters.count(",") + 1
    return functions


def header_constants() -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"\b(RT_\w+) = (-?\d+)", header())}


def exported() -> list[str]:
    lines = run(["nm", "-D", "--defined-only", "--format=posix", LIBRARY]).splitlines()
    return sorted(line.split()[0].split("@")[0] for line in lines if line.split()[1] != "A")


def table() -> ModuleType:
    """The generated ctypes module, without the package around it."""
    path = ROOT / "bindings/python/src/librealtime/_core/abi.py"
    spec = importlib.util.spec_from_file_location("abi", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_symbols_header_and_table_have_the_same_functions() -> None:
    functions = header_functions()
    expect(len(functions) > 40, f"only {len(functions)} functions found in the header")
    missing = set(functions) ^ set(exported())
    expect(not missing, f"header and nm -D differ in {sorted(missing)}")
    arguments = {name: len(entry[0]) for name, entry in table().FUNCTIONS.items()}
    expect(arguments == functions, f"header {functions}\nctypes {arguments}")


def test_ctypes_and_header_have_the_same_constants() -> None:
    python = {
        constant["name"]: getattr(getattr(table(), group["alias"]), constant["short"]).value
        for group in model()["enums"]
        for constant in group["constants"]
    }
    expect(python == header_constants(), f"header {header_constants()}\nctypes {python}")


def test_ctypes_loads_and_calls_the_library() -> None:
    module = table()
    library = module.Library(ctypes.CDLL(str(LIBRARY)))
    expect(library.rt_version().decode() == module.VERSION, "another version")
    loop = ctypes.c_void_p()
    expect(library.rt_loop_new(ctypes.byref(loop)) == module.rt_status.OK, "no loop")
    ran: list[int] = []
    job = module.rt_loop_fn(lambda user: ran.append(user))
    none = module.rt_destroy_fn()
    expect(library.rt_loop_post(loop, job, 7, none) == 0, "no post")
    expect(library.rt_loop_dispatch(loop, 1000) == 0, "no dispatch")
    library.rt_loop_free(loop)
    expect(ran == [7], f"the job ran with {ran}")


# A generated C program asserts the contents of the model, so the compiler and the library check
# them.


def spelled(kind: dict[str, Any]) -> str:
    return f"{'const ' if kind['constant'] else ''}{kind['base']} {'*' * kind['pointers']}"


def pointer(function: dict[str, Any], name: str) -> str:
    parameters = ", ".join(spelled(p["type"]) for p in function["parameters"]) or "void"
    return f"{spelled(function['result'])}(*{name})({parameters})"


def compile_time() -> list[str]:
    """Checks the values of constants, the layout of structs and the types of functions."""
    module = table()
    lines = []
    for group in model()["enums"]:
        for constant in group["constants"]:
            name, value = constant["name"], constant["value"]
            lines.append(f'_Static_assert({name} == {value}, "{name}");')
    for structure in model()["structs"]:
        name = structure["name"]
        kind = getattr(module, name)
        lines.append(f'_Static_assert(sizeof({name}) == {ctypes.sizeof(kind)}, "{name}");')
        for field in structure["fields"]:
            offset = getattr(kind, field["name"]).offset
            where = f"offsetof({name}, {field['name']})"
            lines.append(f'_Static_assert({where} == {offset}, "{name}.{field["name"]}");')
    for callback in model()["callbacks"]:
        variable = pointer(callback, f"as_{callback['name']}")
        lines.append(f"extern {callback['name']} as_{callback['name']};")
        lines.append(f"extern {variable};")
    for function in model()["functions"]:
        lines.append(f"{pointer(function, 'address_of_' + function['name'])} = {function['name']};")
    return lines


def null_call(function: dict[str, Any]) -> list[str]:
    """Calls a function with NULL as its handle. If it takes a destroy function, that runs once."""
    name = function["name"]
    handles = {handle["name"] for handle in model()["handles"]}
    parameters = function["parameters"]
    if not parameters or parameters[0]["type"]["base"] not in handles:
        return []
    if parameters[0]["type"]["pointers"] != 1:
        return []
    special = {"user": "&destroyed", "destroy": "count_up"}
    arguments = ", ".join(special.get(p["name"], "0") for p in parameters)
    if function["result"]["base"] in ("rt_status", "int32_t"):
        lines = [f"  CHECK_STATUS({name}({arguments}), RT_ERROR_INVALID_ARGUMENT);"]
    else:
        lines = [f"  {name}({arguments});"]
    if any(p["name"] == "destroy" for p in parameters):
        lines.append("  CHECK(destroyed == 1);\n  destroyed = 0;")
    return lines


def test_every_function_and_constant_from_c() -> None:
    run_time = []
    for function in model()["functions"]:
        run_time.append(f"  CHECK(address_of_{function['name']} != NULL);")
    for constant in next(g for g in model()["enums"] if g["alias"] == "rt_status")["constants"]:
        name = constant["name"]
        run_time.append(f'  CHECK(strcmp(rt_status_name({name}), "{name}") == 0);')
    for function in model()["functions"]:
        run_time += null_call(function)
    program = [
        '#include "contract.h"',
        *compile_time(),
        "int main(void) {",
        "  int destroyed = 0;",
        *run_time,
        "  return destroyed;",
        "}",
    ]
    SCRATCH.mkdir(parents=True, exist_ok=True)
    source = SCRATCH / "every_function.c"
    source.write_text("\n".join(program) + "\n")
    output = run([compile_c(source)])
    expect(output == "", output)


def test_version_is_the_same_everywhere() -> None:
    version = (ROOT / "VERSION").read_text().strip()
    said = {
        "realtime.abi.json": model()["version"],
        "realtime.h": re.findall(r'RT_VERSION_STRING "(.*)"', (INCLUDE / "realtime.h").read_text())[
            0
        ],
        "abi.py": table().VERSION,
        "librealtime.so": table().Library(ctypes.CDLL(str(LIBRARY))).rt_version().decode(),
        "file name": LIBRARY.resolve().name.removeprefix("librealtime.so."),
    }
    wrong = {where: what for where, what in said.items() if what != version}
    expect(not wrong, f"VERSION says {version}, but {wrong}")
