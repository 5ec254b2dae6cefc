"""Handshakes without 101: redirects between secure and insecure URLs, refusals with a body."""

import zlib
from collections.abc import Callable

from harness import Probe, also_under_valgrind, expect, fails
from servers import Peer, Script, Servers, frame

KIB = 1 << 10
#: How much of a refusal's body is kept.
BODY_LIMIT = 64 * KIB


# Redirects


def redirect(url: str) -> Script:
    async def script(peer: Peer) -> None:
        location = url.replace("ws", "http", 1)
        await peer.send(
            f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {location}\r\n"
            "Content-Length: 0\r\n\r\n".encode()
        )

    return script


async def greet(peer: Peer) -> None:
    await peer.send(peer.answer() + frame(1, b"here"))
    await peer.send(frame(8, await peer.read_until_close()))


def arrives(probe: Probe) -> None:
    probe.expect("open .*")
    probe.expect("text 4 .*")
    probe.close()


@also_under_valgrind
def test_redirect_over_tls(make: Callable[..., Probe], servers: Servers) -> None:
    tls = servers.tls()
    there = servers.script(greet, tls)
    options = {"network_ca_file": tls.ca_file}
    with make(servers.script(redirect(there), tls), redirect_origin="*", **options) as probe:
        arrives(probe)


def test_redirect_to_another_origin_is_refused(
    make: Callable[..., Probe], servers: Servers
) -> None:
    """The other origin would receive the messages. It is not even connected to."""
    visitors: list[Peer] = []

    async def script(peer: Peer) -> None:
        visitors.append(peer)

    with make(servers.script(redirect(servers.script(script)))) as probe:
        fails(probe, "RT_ERROR_REDIRECT", text="another origin")
    servers.settle()
    expect(not visitors, "the other origin was visited")


def test_redirect_to_less_security_is_refused(make: Callable[..., Probe], servers: Servers) -> None:
    """The insecure server is not even connected to."""
    visitors: list[Peer] = []

    async def script(peer: Peer) -> None:
        visitors.append(peer)

    tls = servers.tls()
    url = servers.script(redirect(servers.script(script)), tls)
    with make(url, network_ca_file=tls.ca_file) as probe:
        fails(probe, "RT_ERROR_INSECURE_REDIRECT", text="without TLS")
    servers.settle()
    expect(not visitors, "the insecure place was visited")


def test_redirect_to_less_security_is_allowed(make: Callable[..., Probe], servers: Servers) -> None:
    tls = servers.tls()
    url = servers.script(redirect(servers.script(greet)), tls)
    options = {"network_ca_file": tls.ca_file, "redirect_origin": "*"}
    with make(url, allow_insecure_redirects=True, **options) as probe:
        arrives(probe)


def test_redirect_to_more_security(make: Callable[..., Probe], servers: Servers) -> None:
    tls = servers.tls()
    url = servers.script(redirect(servers.script(greet, tls)))
    with make(url, network_ca_file=tls.ca_file, redirect_origin="*") as probe:
        arrives(probe)


def test_redirect_verifies_the_other_servers_certificate(
    make: Callable[..., Probe], servers: Servers
) -> None:
    """The server that it redirects to is verified like any other."""
    known, stranger = servers.tls(), servers.tls()
    url = servers.script(redirect(servers.script(greet, stranger)), known)
    with make(url, network_ca_file=known.ca_file, redirect_origin="*") as probe:
        fails(probe, "RT_ERROR_TLS", text="certificate")


# Refusals


def refuse(headers: str, body: bytes, *, then_end: bool = True) -> Script:
    async def script(peer: Peer) -> None:
        await peer.send(f"HTTP/1.1 403 Not You\r\n{headers}\r\n".encode() + body)
        if not then_end:
            await peer.read_to_end()

    return script


def told(probe: Probe, body: bytes) -> None:
    """Expects the refusal with this much of the body, then the failure."""
    probe.expect(rf"refused 403 \[Not You\] \d+ {len(body)} {zlib.crc32(body):08x}")
    fails(probe, "RT_ERROR_HTTP_STATUS", text="403")


def chunked(*chunks: bytes) -> bytes:
    """RFC 9112 §7.1, with an extension and trailers, which the client must ignore."""
    coded = b"".join(b"%x;ext=1\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return coded + b"0\r\nX-Trailer: 1\r\n\r\n"


@also_under_valgrind
def test_refusal_with_chunked_body(make: Callable[..., Probe], servers: Servers) -> None:
    """Reported at the last chunk, while the connection stays open."""
    body = chunked(b"because", b" of ", b"that" * 300)
    script = refuse("Transfer-Encoding: chunked\r\n", body, then_end=False)
    with make(servers.script(script), open_timeout_ms=0) as probe:
        told(probe, b"because of " + b"that" * 300)


def test_refusal_with_long_body(make: Callable[..., Probe], servers: Servers) -> None:
    """70 KiB are cut at the limit."""
    body = bytes(i % 251 for i in range(70 * KIB))
    with make(servers.script(refuse(f"Content-Length: {len(body)}\r\n", body))) as probe:
        told(probe, body[:BODY_LIMIT])
    script = refuse("Transfer-Encoding: chunked\r\n", chunked(body[:9999], body[9999:]))
    with make(servers.script(script)) as probe:
        told(probe, body[:BODY_LIMIT])


def test_refusal_with_endless_body(make: Callable[..., Probe], servers: Servers) -> None:
    """Reported at the limit: the server never ends the body."""

    async def script(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 403 Not You\r\n\r\n")
        while True:
            await peer.send(b"more" * KIB)

    with make(servers.script(script), open_timeout_ms=0) as probe:
        told(probe, b"more" * (BODY_LIMIT // 4))


def test_refusal_with_stalled_body(make: Callable[..., Probe], servers: Servers) -> None:
    """The only time limit is the two seconds for a body; without it the test would never end."""
    script = refuse("Content-Length: 100\r\n", b"as far as", then_end=False)
    with make(servers.script(script), open_timeout_ms=0) as probe:
        told(probe, b"as far as")


def test_refusal_with_cut_body(make: Callable[..., Probe], servers: Servers) -> None:
    with make(servers.script(refuse("Content-Length: 100\r\n", b"as far as"))) as probe:
        told(probe, b"as far as")


def test_refusal_with_broken_chunks(make: Callable[..., Probe], servers: Servers) -> None:
    """The body before the broken chunk is reported, without waiting for more."""
    script = refuse("Transfer-Encoding: chunked\r\n", b"4\r\nfour\r\nxyz\r\n", then_end=False)
    with make(servers.script(script), open_timeout_ms=0) as probe:
        told(probe, b"four")


def test_refusal_until_the_end(make: Callable[..., Probe], servers: Servers) -> None:
    """Without a length, the body ends with the connection."""
    with make(servers.script(refuse("", b"x" * 3000))) as probe:
        told(probe, b"x" * 3000)


def test_refusal_under_tls(make: Callable[..., Probe], servers: Servers) -> None:
    tls = servers.tls()
    body = b"x" * 40_000
    script = refuse(f"Content-Length: {len(body)}\r\n", body, then_end=False)
    with make(servers.script(script, tls), network_ca_file=tls.ca_file) as probe:
        told(probe, body)
