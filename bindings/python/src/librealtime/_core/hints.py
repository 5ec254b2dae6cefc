"""What options of httpx, requests and aiohttp correspond to here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

_REDIRECTS = "redirects are followed by default; max_redirects=0 follows none"
_TRUST = "this is set for the whole client: see ca_file and network of RESTClient"
_PROXY = "this is set for the whole client: see proxy of RESTClient"
_CAREFUL = "see ca_file, and insecure_skip_verification of Network"

#: Options that requests elsewhere have and requests here do not.
OF_REQUESTS = {
    "follow_redirects": _REDIRECTS,
    "allow_redirects": _REDIRECTS,
    "verify": _TRUST,
    "ssl": _TRUST,
    "cert": "this is set for the whole client: see client_certificate of Network",
    "proxy": _PROXY,
    "proxies": _PROXY,
    "body": "pass the body as content, data or json",
    "files": "pass a file as content; multipart bodies are not supported",
    "retries": "attempts limits how often a request is tried in total",
    "stream": "use client.stream() to read the response while it arrives",
}

#: Options that clients elsewhere have and objects here do not.
OF_OBJECTS = {
    "follow_redirects": _REDIRECTS,
    "allow_redirects": _REDIRECTS,
    "verify": _CAREFUL,
    "ssl": _CAREFUL,
    "cert": "see client_certificate of Network",
    "proxies": "see proxy, and no_proxy of Network",
    "mounts": "see proxy, and no_proxy of Network",
    "trust_env": "proxy=None ignores proxies of the environment",
    "timeout": "each time limit has its own option, whose name ends in _timeout",
}


def hint(name: str, known: Iterable[str], elsewhere: Mapping[str, str]) -> str:
    """What the caller may have meant by an unknown option; added to the error message."""
    if name in elsewhere:
        return f": {elsewhere[name]}"
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""
