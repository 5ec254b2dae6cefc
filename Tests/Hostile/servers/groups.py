"""TLS with finite-field Diffie-Hellman groups of 8,192 bits, which take at least 0.1 s to use."""

from __future__ import annotations

import base64
import pathlib
import ssl

import trustme

from servers.http1 import CHUNKED, EVENT, chunk, head
from servers.peer import Context, Peer, attack
from servers.records import Context as OpenSSLContext
from servers.websockets import handshake

LARGEST_ALLOWED, LARGE = 4096, 8192


def contexts(folder: pathlib.Path, authority: trustme.CA) -> dict[str, Context]:
    leaf = authority.issue_cert("127.0.0.1", key_type=trustme.KeyType.RSA)
    chain_file = folder / "rsa.pem"
    leaf.private_key_and_cert_chain_pem.write_to_path(str(chain_file))
    made: dict[str, Context] = {}
    for bits in (LARGEST_ALLOWED, LARGE):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain_file)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("DHE+AESGCM")
        parameters = folder / f"dh{bits}.pem"
        parameters.write_text(dh_parameters(bits))
        context.load_dh_params(parameters)
        made[f"dhe{bits}"] = context
    ffdhe = OpenSSLContext(chain_file)
    ffdhe.set_groups(f"ffdhe{LARGE}".encode())
    return {**made, f"ffdhe{LARGE}": ffdhe}


def dh_parameters(bits: int) -> str:
    """DHParameter of PKCS #3 as PEM.

    The modulus is only odd, not prime: OpenSSL has shortcuts for the groups that it knows.
    """
    modulus = (1 << bits) - (1 << bits // 2) - 1
    data = der(0x30, integer(modulus) + integer(2))
    text = base64.encodebytes(data).decode()
    return f"-----BEGIN DH PARAMETERS-----\n{text}-----END DH PARAMETERS-----\n"


def integer(value: int) -> bytes:
    return der(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def der(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:
        return bytes([tag, length]) + content
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(size)]) + size + content


@attack
def polite(peer: Peer) -> None:
    """Serves each client that accepts the group."""
    if peer.transport == "websocket":
        handshake(peer)
    else:
        peer.request()
        peer.send(head(peer, CHUNKED) + chunk(EVENT))
    peer.hold()
