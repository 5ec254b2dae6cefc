"""Headers as a caller passes them, including credentials."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Union

from .abi import VERSION, rt_status
from .naming import kind_of
from .values import invalid, pairs, text, user_and_password

HeadersLike = Union[Mapping[str, str], Iterable["tuple[str, str]"]]
Pairs = list[tuple[str, str]]

USER_AGENT = f"librealtime/{VERSION}"

_INVALID = rt_status.ERROR_INVALID_HEADER


def header(name: str, value: str, option: str = "") -> tuple[bytes, bytes]:
    """
    :param option: the one that has it, for messages.
    """
    where = f" in {option}" if option else ""
    return (
        text(name, f"a header's name{where}", _INVALID),
        text(value, f"the value of header {name}{where}", _INVALID),
    )


def header_pairs(headers: HeadersLike | None, what: str = "headers") -> Pairs:
    """The pairs of a mapping, or the pairs themselves."""
    return pairs(headers, what)


def laid_over(below: Pairs, above: Pairs) -> Pairs:
    """Headers `above` override those of the same name `below`."""
    names = {name.lower() for name, _ in above}
    return [pair for pair in below if pair[0].lower() not in names] + above


def with_credentials(
    headers: HeadersLike | None, auth: tuple[str, str] | None, bearer_token: str | None
) -> Pairs:
    """These headers, with an Authorization header if `auth` or `bearer_token` is given."""
    given = header_pairs(headers)
    if auth is not None and bearer_token is not None:
        raise invalid("auth and bearer_token set the same header; give one of them")
    if auth is not None:
        user_and_password(auth)
        return laid_over(given, [("Authorization", basic_auth(*auth))])
    if bearer_token is not None:
        if not text(bearer_token, "bearer_token"):
            raise invalid("bearer_token is empty; give a token, or None")
        return laid_over(given, [("Authorization", f"Bearer {bearer_token}")])
    return given


def basic_auth(user: str, password: str) -> str:
    """The value of an Authorization header for basic credentials (RFC 7617).

    :raises InvalidArgument: for a user name with a colon.
    """
    name, word = text(user, "the user"), text(password, "the password")
    if b":" in name:
        raise invalid("the user name contains a colon, which separates the password (RFC 7617 §2)")
    return "Basic " + base64.b64encode(name + b":" + word).decode()


def cookie_header(cookies: Mapping[str, str]) -> bytes:
    """The value of a Cookie header (RFC 6265 §4.2.1)."""
    crumbs = []
    for name, value in checked_cookies(cookies).items():
        key = text(name, "a name in cookies", _INVALID)
        crumb = text(value, f"the value of {name} in cookies", _INVALID)
        # These would split a cookie in two or change its name (RFC 6265 §4.1.1).
        if not key or b";" in key or b"=" in key or b";" in crumb:
            raise invalid(
                f"{name!r} in cookies has an empty name, or a ';' or '=' that would split it"
            )
        crumbs.append(key + b"=" + crumb)
    return b"; ".join(crumbs)


def checked_cookies(cookies: Mapping[str, str]) -> Mapping[str, str]:
    if not isinstance(cookies, Mapping):
        raise TypeError(f"cookies is {kind_of(cookies)}; a mapping is expected")
    return cookies
