"""What options of httpx, requests and aiohttp are called here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

_REDIRECTS = "redirects are followed by default, and max_redirects=0 follows none"
_TRUST = "the client decides whom to trust: see ca_file and network of RESTClient"
_PROXY = "the client decides on a proxy: see proxy of RESTClient"
_CAREFUL = "see ca_file, and insecure_skip_verification of Network"

#: Those that a request does not have.
OF_REQUESTS = {
    "follow_redirects": _REDIRECTS,
    "allow_redirects": _REDIRECTS,
    "verify": _TRUST,
    "ssl": _TRUST,
    "cert": "the client has the certificate: see client_certificate of Network",
    "proxy": _PROXY,
    "proxies": _PROXY,
    "body": "a body is given as content, data or json",
    "files": "a file is given as content; there are no multipart bodies",
    "retries": "attempts says how often a request is tried in all",
    "stream": "client.stream() gives the answer while it comes",
}

#: Those that an object does not have.
OF_OBJECTS = {
    "follow_redirects": _REDIRECTS,
    "allow_redirects": _REDIRECTS,
    "verify": _CAREFUL,
    "ssl": _CAREFUL,
    "cert": "see client_certificate of Network",
    "proxies": "see proxy, and no_proxy of Network",
    "mounts": "see proxy, and no_proxy of Network",
    "trust_env": "proxy=None follows no proxy of the environment",
    "timeout": "each time limit has a name of its own, which ends in _timeout",
}


def hint(name: str, known: Iterable[str], elsewhere: Mapping[str, str]) -> str:
    """What the caller may have meant by an unknown option."""
    if name in elsewhere:
        return f": {elsewhere[name]}"
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""
