"""A request's origin, which decides whether the client's headers are sent along."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Optional

#: Scheme, host and port.
Origin = Optional["tuple[str, str, int]"]

# What the library regards as a whole URL.
_WHOLE = re.compile(r"[^:/?#]*://")
_URL = re.compile(
    r"(https?)://(?:[^/?#@\\]*@)?([a-z0-9_.~-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?(?:[/?#]|\Z)",
    re.ASCII | re.IGNORECASE,
)


def origin(url: str) -> Origin:
    """None for a URL in an unusual form, which therefore equals no other."""
    found = _URL.match(url)
    if found is None:
        return None
    scheme, host, port = found[1].lower(), found[2].lower(), found[3]
    return scheme, host, int(port) if port else {"http": 80, "https": 443}[scheme]


def is_trusted(path: str, base_url: str | None, others: Collection[str]) -> bool:
    """Whether a request to `path` may carry the client's own headers; the library's rule
    (``rt_rest_add_credential_origin``)."""
    if "*" in others or not (base_url is None or _WHOLE.match(path)):
        return True
    if base_url is None and not others:
        return True
    target = origin(path)
    known = others if base_url is None else (base_url, *others)
    return target is not None and any(origin(url) == target for url in known)
