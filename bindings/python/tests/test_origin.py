"""Which requests may carry the client's own headers."""

from __future__ import annotations

import pytest

from librealtime._rest.origin import is_trusted

BASE = "https://api.example.org/v1"


@pytest.mark.parametrize(
    "path",
    ["", "users", "/users", "?next=http://other.example", "/go/http://other.example", "a:b",
     "https://api.example.org", "https://api.example.org/x", "HTTPS://API.example.org:443?a",
     "https://user:password@api.example.org/#x"],
)  # fmt: skip
def test_the_base(path: str) -> None:
    assert is_trusted(path, BASE, [])


@pytest.mark.parametrize(
    "path",
    ["http://api.example.org/", "https://api.example.org:444/", "https://api.example.org.evil/",
     "https://api.example.org@evil.example/", "https://evil.example/https://api.example.org/",
     "https://evil.example\\@api.example.org/", "https://api.example.org\\.evil.example/",
     "https://api.example.org%2eevil.example/", " https://api.example.org/", "://api.example.org/",
     "https://api.example.org\n"],
)  # fmt: skip
def test_other_origins(path: str) -> None:
    """Also if they are only written in an unusual form."""
    assert not is_trusted(path, BASE, [])
    assert is_trusted(path, BASE, ["*"])


def test_others_that_are_named() -> None:
    others = ["http://files.example.org:8080", "http://[::1]"]
    assert is_trusted("http://files.example.org:8080/x", BASE, others)
    assert is_trusted("http://[::1]:80/x", BASE, others)
    assert not is_trusted("http://files.example.org/x", BASE, others)
    # Without a base URL the caller chooses each URL, unless origins are given.
    assert is_trusted("http://any.example/", None, [])
    assert is_trusted("http://[::1]/", None, others)
    assert not is_trusted("http://any.example/", None, others)
