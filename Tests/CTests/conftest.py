"""The C tests: header, symbols, the shared library, its installation, and the contract."""

import pytest
from suite import LIBRARY


def pytest_sessionstart() -> None:
    if not LIBRARY.exists():
        pytest.exit(f"{LIBRARY} is missing: run `make build` first", 2)
