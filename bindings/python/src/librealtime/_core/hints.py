"""What options of httpx, requests and aiohttp are called here."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from .option_kinds import Table

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

_OF_OBJECTS = {
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


def called(name: str, kind: Any, table: Table) -> None:
    """Has complaints of arguments call a class by its public name, and tell what was meant.

    :param table: what it is given as ``**options``: its signature and its documentation show them.
    """
    make = kind.__init__
    make.__qualname__ = name
    known = [*make.__kwdefaults__, *(option.name for option in table)]
    plain = make.__annotations__.keys() - {"options"}

    @functools.wraps(make)
    def checked(self: object, *args: Any, **options: Any) -> None:
        for option in options:
            if option not in plain and option not in table:
                said = hint(option, known, _OF_OBJECTS)
                raise TypeError(f"{name}() got an unexpected keyword argument {option!r}{said}")
        make(self, *args, **options)

    signature = inspect.signature(make)
    own = [one for one in signature.parameters.values() if one.name != "options"]
    shown = [*own, *(option.parameter for option in table)]
    checked.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    kind.__init__ = checked
    kind.__doc__ = f"{kind.__doc__.rstrip()}\n\n{table.doc}\n    "
