"""Headers as a caller gives them, and the credentials among them."""

from __future__ import annotations

import base64

from ._options import HeadersLike
from ._values import invalid, pairs, text, user_and_password

Pairs = list[tuple[str, str]]


def header_pairs(headers: HeadersLike | None) -> Pairs:
    """From a mapping or pairs."""
    return pairs(headers, "headers")


def laid_over(below: Pairs, above: Pairs) -> Pairs:
    """Headers in the place of those of their names."""
    names = {name.lower() for name, _ in above}
    return [pair for pair in below if pair[0].lower() not in names] + above


def with_credentials(
    headers: HeadersLike | None, auth: tuple[str, str] | None, bearer_token: str | None
) -> Pairs:
    """These headers with an Authorization, if there is one of the two to put into it."""
    given = header_pairs(headers)
    if auth is not None and bearer_token is not None:
        raise invalid("auth and bearer_token are the same header; give one of them")
    if auth is not None:
        user_and_password(auth)
        return laid_over(given, [("Authorization", basic_auth(*auth))])
    if bearer_token is not None:
        if not text(bearer_token, "bearer_token"):
            raise invalid('bearer_token is ""')
        return laid_over(given, [("Authorization", f"Bearer {bearer_token}")])
    return given


def basic_auth(user: str, password: str) -> str:
    """The value of an Authorization header for basic credentials (RFC 7617).

    :raises InvalidArgument: for a user name with a colon.
    """
    name, word = text(user, "the user"), text(password, "the password")
    if b":" in name:
        raise invalid("the user name has a colon, which ends it (RFC 7617 §2)")
    return "Basic " + base64.b64encode(name + b":" + word).decode()
