"""The header compiles by itself, without warnings, in each dialect of C and C++ that we support."""

from __future__ import annotations

import pytest
from suite import INCLUDE, SCRATCH, run

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
TEXT = "#include <realtime.h>\n#include <realtime.h>\nint unused_but_not_empty;\n"


@pytest.mark.parametrize(
    ("compiler", "language", "standard"), MODES, ids=[f"{mode[0]}_{mode[2]}" for mode in MODES]
)
def test_header(compiler: str, language: str, standard: str) -> None:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    source = SCRATCH / ("header.c" if language == "c" else "header.cpp")
    source.write_text(TEXT)
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
