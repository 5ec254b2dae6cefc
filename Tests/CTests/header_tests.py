"""The header compiles by itself, without warnings, in each dialect of C and C++ that we support."""

from __future__ import annotations

import pytest
from suite import INCLUDE, SCRATCH, expect, model, run

MODES = [
    ("gcc", "c", "c99"),
    ("gcc", "c", "c11"),
    ("gcc", "c", "c2x"),
    ("clang", "c", "c11"),
    ("clang", "c", "c23"),
    ("g++", "c++", "c++11"),
    ("g++", "c++", "c++20"),
    ("clang++", "c++", "c++11"),
    ("clang++", "c++", "c++20"),
]

# Included twice, to test the include guard.
TEXT = """\
#include <realtime.h>
#include <realtime.h>
extern bool has_reason(const rt_failure *failure);
bool has_reason(const rt_failure *failure) { return RT_VIEW_HAS(failure, close_reason); }
"""


def usual_functions() -> str:
    """The code at the heads of the chapters, as functions."""
    return "".join(
        f"extern void use_{number}(void);\nvoid use_{number}(void) {{\n"
        + "\n".join(f"  {line}" for line in chapter["usage"])
        + "\n}\n"
        for number, chapter in enumerate(model()["chapters"])
    )


def test_each_object_shows_its_usual_functions() -> None:
    functions = {function["name"] for function in model()["functions"]}
    for handle in model()["handles"]:
        noun = handle["name"]
        if f"{noun}_new" not in functions:
            continue
        (chapter,) = (c for c in model()["chapters"] if c["name"] == handle["chapter"])
        code = "\n".join(chapter["usage"])
        words = [f"{noun}_new(", f"{noun}_free("]
        if f"{noun}_start" in functions and noun != "rt_loop":
            words += [f"{noun}_connect(", "_receive("]
        for word in words:
            expect(word in code, f"{handle['chapter']} does not show {word}")


@pytest.mark.parametrize(
    ("compiler", "language", "standard"), MODES, ids=[f"{mode[0]}_{mode[2]}" for mode in MODES]
)
def test_header(compiler: str, language: str, standard: str) -> None:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    source = SCRATCH / f"header_{standard}.{'c' if language == 'c' else 'cpp'}"
    source.write_text(TEXT + usual_functions())
    warnings = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    run(
        [
            compiler,
            f"-std={standard}",
            *warnings,
            "-fsyntax-only",
            f"-I{INCLUDE}",
            source,
        ]
    )
