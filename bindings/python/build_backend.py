"""Builds the wheel with the shared library inside, for pip, build and build_wheel (PEP 517).

The library is not compiled here. It is LIBREALTIME_PATH or, in a checkout, build/librealtime.so.
Without it nothing is built, as such a package could not be imported.

A wheel is a zip with three files about itself (PEP 427), so nothing is needed but Python and,
before 3.11, tomli. The same input gives the same bytes: times are SOURCE_DATE_EPOCH's, or zip's
first.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python before 3.11
    import tomli as tomllib  # type: ignore[import-not-found, no-redef, unused-ignore]

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "src" / "librealtime"
#: The checkout, if this is one.
ROOT = HERE.parents[1]
ELF_MAGIC = b"\x7fELF"

#: Prints the version of a library.
ASK_VERSION = """
import ctypes, sys

library = ctypes.CDLL(sys.argv[1])
library.rt_version.restype = ctypes.c_char_p
print(library.rt_version().decode())
"""

#: What a source distribution has, besides PKG-INFO, the package and the examples.
SOURCES = (
    "pyproject.toml",
    "build_backend.py",
    "build_wheel",
    "README.md",
    "PUSHER.md",
    "METEOR.md",
    "RUNNING.md",
)


def is_checkout() -> bool:
    """Whether the library's own sources are here, too; a source distribution has none."""
    return (ROOT / "Sources" / "RealtimeABI").is_dir()


def find_library() -> Path:
    """The library to package. Ends the program with what to do if there is none."""
    chosen = os.environ.get("LIBREALTIME_PATH")
    if chosen:
        if not Path(chosen).is_absolute():
            sys.exit(
                f"librealtime: LIBREALTIME_PATH is {chosen}, a relative path, but tools build in"
                " folders of their own: give the whole path"
            )
        return checked(Path(chosen), f"LIBREALTIME_PATH is {chosen}, which")
    built = ROOT / "build" / "librealtime.so"
    if is_checkout():
        if not built.is_file():
            sys.exit(
                f"librealtime: {built} is missing, and a package without it could not be imported:"
                " run `make build` first, or set LIBREALTIME_PATH to a librealtime.so"
            )
        return checked(built, str(built))
    sys.exit(
        "librealtime: this source distribution has only the Python part, not the library's sources:"
        " set LIBREALTIME_PATH to a librealtime.so, or install a wheel, which contains one"
        " (`make wheel` in a checkout builds it)"
    )


def checked(library: Path, what: str) -> Path:
    """Checks that this is the library, in the version of this package. Ends the program if not."""
    if not library.is_file():
        sys.exit(f"librealtime: {what} is not a file")
    with library.open("rb") as file:
        if file.read(len(ELF_MAGIC)) != ELF_MAGIC:
            sys.exit(f"librealtime: {what} is not a shared library")
    # In another process, as a library stays loaded, and may be anything.
    command = [sys.executable, "-I", "-c", ASK_VERSION, str(library.resolve())]
    said = subprocess.run(command, capture_output=True, text=True)
    wanted, found = version(), said.stdout.strip()
    if said.returncode != 0:
        reason = said.stderr.strip().rpartition("\n")[2] or "it cannot be loaded"
        sys.exit(f"librealtime: {what} is not librealtime {wanted}: {reason}")
    if found != wanted:
        sys.exit(f"librealtime: {what} is librealtime {found}; this package needs {wanted}")
    return library


def version() -> str:
    """The version in the generated table, which is the library's."""
    table = (PACKAGE / "_core" / "abi.py").read_text()
    found = re.search(r'^VERSION = "([^"]+)"$', table, re.MULTILINE)
    if not found:
        sys.exit("librealtime: abi.py has no VERSION")
    return found[1]


def metadata(release: str) -> str:
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    head = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {release}",
        f"Summary: {project['description']}",
        f"License: {project['license']['text']}",
        *(f"Classifier: {classifier}" for classifier in project["classifiers"]),
        f"Requires-Python: {project['requires-python']}",
        *(f"Provides-Extra: {extra}" for extra in extras),
        *(
            f"Requires-Dist: {package}; extra == '{extra}'"
            for extra, packages in extras.items()
            for package in packages
        ),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join([*head, "", (HERE / project["readme"]).read_text()])


def license_text() -> bytes:
    own = HERE / "LICENSE"
    return (own if own.is_file() else ROOT / "LICENSE").read_bytes()


def stripped(library: Path) -> bytes:
    """The library without symbols that only debuggers read; saves a third of its size."""
    if shutil.which("strip") is None:
        return library.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / library.name
        subprocess.run(["strip", "--strip-unneeded", "-o", copy, library], check=True)
        return copy.read_bytes()


def python_files() -> list[Path]:
    return [
        path
        for path in sorted(PACKAGE.rglob("*"))
        if path.suffix == ".py" or path.name == "py.typed"
    ]


def contents(library: Path) -> dict[str, bytes]:
    """The files of the package by name."""
    files = {
        f"librealtime/{path.relative_to(PACKAGE).as_posix()}": path.read_bytes()
        for path in python_files()
    }
    files["librealtime/_lib/librealtime.so"] = stripped(library)
    return files


def record(files: dict[str, bytes], name: str) -> bytes:
    lines = []
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(data)}")
    return "\n".join([*lines, f"{name},,", ""]).encode()


def epoch() -> int:
    """The time of all files: by default the earliest that a zip file can store."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))


def write_wheel(files: dict[str, bytes], folder: Path) -> Path:
    """Writes a wheel with these files and those about itself."""
    release = version()
    tag = f"py3-none-linux_{os.uname().machine}"
    info = f"librealtime-{release}.dist-info"
    files = dict(files)
    files[f"{info}/LICENSE"] = license_text()
    files[f"{info}/METADATA"] = metadata(release).encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: build_wheel\nRoot-Is-Purelib: false\nTag: {tag}\n"
    ).encode()
    files[f"{info}/RECORD"] = record(files, f"{info}/RECORD")
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"librealtime-{release}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, time.gmtime(epoch())[:6])
            mode = 0o755 if path.endswith(".so") else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return wheel


# The functions that pip and `build` call, with the names and parameters of PEP 517 and PEP 660.


def build_wheel(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    return write_wheel(contents(find_library()), Path(wheel_directory)).name


def build_editable(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    """A wheel that leads to this folder, in which a link leads to the library."""
    library = find_library().resolve()
    packaged = PACKAGE / "_lib" / "librealtime.so"
    packaged.parent.mkdir(exist_ok=True)
    if packaged.resolve() != library:
        packaged.unlink(missing_ok=True)
        packaged.symlink_to(library)
    path = f"{PACKAGE.parent}\n".encode()
    return write_wheel({"librealtime.pth": path}, Path(wheel_directory)).name


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """The Python part, from which a wheel can be built where a library is."""
    print(
        "librealtime: the source distribution has only the Python part; building a wheel from it"
        " needs LIBREALTIME_PATH",
        file=sys.stderr,
    )
    release = version()
    base = f"librealtime-{release}"
    examples = [f"examples/{path.name}" for path in (HERE / "examples").glob("*.py")]
    files = {name: (HERE / name).read_bytes() for name in (*SOURCES, *examples)}
    files["LICENSE"] = license_text()
    files["PKG-INFO"] = metadata(release).encode()
    for path in python_files():
        files[path.relative_to(HERE).as_posix()] = path.read_bytes()
    archive = Path(sdist_directory) / f"{base}.tar.gz"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{base}/{name}")
            entry.size, entry.mtime = len(data), epoch()
            entry.mode = 0o755 if name == "build_wheel" else 0o644
            tar.addfile(entry, io.BytesIO(data))
    archive.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch()))
    return archive.name
