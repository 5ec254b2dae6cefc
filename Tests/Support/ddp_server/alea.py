"""Random ids and fractions as Meteor draws them from seeds: the generator Alea, and its streams."""

from __future__ import annotations

import math
import secrets
import struct

_ID = "23456789ABCDEFGHJKLMNPQRSTWXYZabcdefghijkmnopqrstuvwxyz"
_HEX = "0123456789abcdef"
_SECRET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"


class _Mash:
    """The hash that turns seeds into the first state. It carries over from seed to seed."""

    def __init__(self) -> None:
        self._n = float(0xEFC8249D)

    def __call__(self, text: str) -> float:
        n = self._n
        data = text.encode("utf-16-le", "surrogatepass")
        for (unit,) in struct.iter_unpack("<H", data):
            n += unit
            h = 0.02519603282416938 * n
            n = float(int(h) % 2**32)
            h -= n
            h *= n
            n = float(int(h) % 2**32)
            h -= n
            n += h * 2.0**32
        self._n = n
        return int(n) % 2**32 * 2.0**-32


class Alea:
    """A generator. Equal seeds give equal draws, on the client and on the server."""

    def __init__(self, *seeds: str) -> None:
        mash = _Mash()
        state = [mash(" ") for _ in range(3)]
        for seed in seeds:
            for index in range(3):
                state[index] -= mash(seed)
                if state[index] < 0:
                    state[index] += 1
        self._state = state
        self._carry = 1

    def fraction(self) -> float:
        s0, s1, s2 = self._state
        t = 2091639 * s0 + self._carry * 2.0**-32
        self._carry = math.floor(t)
        self._state = [s1, s2, t - self._carry]
        return self._state[2]

    def text(self, alphabet: str, length: int) -> str:
        return "".join(alphabet[math.floor(self.fraction() * len(alphabet))] for _ in range(length))

    def id(self, length: int = 17) -> str:
        return self.text(_ID, length)

    def hex(self, length: int) -> str:
        return self.text(_HEX, length)

    def secret(self, length: int = 43) -> str:
        return self.text(_SECRET, length)


def new_id(length: int = 17) -> str:
    """An id that no seed determines."""
    return "".join(secrets.choice(_ID) for _ in range(length))


def new_secret(length: int = 43) -> str:
    return "".join(secrets.choice(_SECRET) for _ in range(length))


class Streams:
    """The named streams of one method call. Without a seed of the client, they have their own."""

    def __init__(self, seed: str | None = None) -> None:
        self._seed = seed or secrets.token_hex(10)
        self._streams: dict[str, Alea] = {}

    def stream(self, name: str = "default") -> Alea:
        if name not in self._streams:
            self._streams[name] = Alea(self._seed, name)
        return self._streams[name]

    def inner(self, method: str) -> Streams:
        """The streams of a method that this one calls."""
        return Streams(self.stream(f"/rpc/{method}").hex(20))
