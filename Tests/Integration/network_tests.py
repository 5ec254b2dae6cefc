"""How connections are made: TLS good and bad, addresses, Unix sockets, options of the socket."""

import contextlib
import socket
import ssl
from collections.abc import Callable

from harness import Failed, Probe, also_under_valgrind, expect, fails
from servers import Peer, Servers, frame

PASSWORD = "s3cret-key-password"


def works(probe: Probe) -> None:
    """It opens, carries a message there and back, and closes normally."""
    probe.expect("open .*")
    checksum = probe.ask("text 1000 1", "sent (.*)")[1]
    probe.expect(f"text 1000 {checksum}")
    probe.close()


# Which certificates TLS trusts


def test_expired_certificate(make: Callable[..., Probe], servers: Servers) -> None:
    tls = servers.tls(expired=True)
    with make(servers.echo(tls), network_ca_file=tls.ca_file) as probe:
        fails(probe, "RT_ERROR_TLS", text="expired")


def test_certificate_for_another_host(make: Callable[..., Probe], servers: Servers) -> None:
    tls = servers.tls("other.example.org")
    with make(servers.echo(tls), network_ca_file=tls.ca_file) as probe:
        fails(probe, "RT_ERROR_TLS", text="localhost")


def test_unknown_authority(make: Callable[..., Probe], servers: Servers) -> None:
    with make(servers.echo(servers.tls()), network_ca_file=servers.tls().ca_file) as probe:
        fails(probe, "RT_ERROR_TLS", text="certificate")


def test_ca_folder(make: Callable[..., Probe], servers: Servers) -> None:
    tls = servers.tls()
    with make(servers.echo(tls), ca_path=tls.ca_folder()) as probe:
        works(probe)


def test_ca_folder_of_others(make: Callable[..., Probe], servers: Servers) -> None:
    with make(servers.echo(servers.tls()), ca_path=servers.tls().ca_folder()) as probe:
        fails(probe, "RT_ERROR_TLS", text="certificate")


def test_missing_ca_file(make: Callable[..., Probe], servers: Servers) -> None:
    missing = servers.folder / "nothing.pem"
    with make(servers.echo(servers.tls()), network_ca_file=missing) as probe:
        fails(probe, "RT_ERROR_TLS", text=str(missing))


@also_under_valgrind
def test_right_pin_is_accepted(make: Callable[..., Probe], servers: Servers) -> None:
    tls = servers.tls()
    with make(servers.echo(tls), network_ca_file=tls.ca_file, pin=tls.pin()) as probe:
        works(probe)


def test_one_pin_of_two(make: Callable[..., Probe], servers: Servers) -> None:
    tls = servers.tls()
    pins = [servers.tls().pin(), tls.pin()]
    with make(servers.echo(tls), network_ca_file=tls.ca_file, pin=pins) as probe:
        works(probe)


def test_wrong_pin(make: Callable[..., Probe], servers: Servers) -> None:
    """The certificate is good and for this host, but its key differs from the pin."""
    tls = servers.tls()
    other = servers.tls().pin()
    with make(servers.echo(tls), network_ca_file=tls.ca_file, pin=other) as probe:
        fails(probe, "RT_ERROR_TLS", text="public key")


def test_verification_can_be_skipped(make: Callable[..., Probe], servers: Servers) -> None:
    tls = servers.tls("other.example.org", expired=True)
    with make(servers.echo(tls), insecure=True) as probe:
        works(probe)


def test_skipped_verification_keeps_pins(make: Callable[..., Probe], servers: Servers) -> None:
    tls = servers.tls("other.example.org")
    with make(servers.echo(tls), insecure=True, pin=tls.pin()) as probe:
        works(probe)
    with make(servers.echo(tls), insecure=True, pin=servers.tls().pin()) as probe:
        fails(probe, "RT_ERROR_TLS", text="public key")


# What TLS sends


@also_under_valgrind
def test_client_certificate_with_password(make: Callable[..., Probe], servers: Servers) -> None:
    tls = servers.tls(asks_clients=True)
    certificate, key = tls.client(PASSWORD)
    files = f"{certificate},{key},{PASSWORD}"
    with make(servers.echo(tls), network_ca_file=tls.ca_file, client_certificate=files) as probe:
        works(probe)


def test_client_certificate_in_one_file(make: Callable[..., Probe], servers: Servers) -> None:
    tls = servers.tls(asks_clients=True)
    certificate, key = tls.client()
    certificate.write_text(certificate.read_text() + key.read_text())
    with make(
        servers.echo(tls), network_ca_file=tls.ca_file, client_certificate=certificate
    ) as probe:
        works(probe)


def test_client_certificate_missing(make: Callable[..., Probe], servers: Servers) -> None:
    """In TLS 1.3 the server reports it only after the client's handshake has ended."""
    tls = servers.tls(asks_clients=True)
    with make(servers.handshakes(tls), network_ca_file=tls.ca_file) as probe:
        fails(probe, "RT_ERROR_TLS", text="certificate required")


def test_client_certificate_missing_before_tls_1_3(
    make: Callable[..., Probe], servers: Servers
) -> None:
    tls = servers.tls(asks_clients=True, newest=ssl.TLSVersion.TLSv1_2)
    with make(servers.handshakes(tls), network_ca_file=tls.ca_file) as probe:
        fails(probe, "RT_ERROR_TLS", text="alert")


def test_client_certificate_with_wrong_password(
    make: Callable[..., Probe], servers: Servers
) -> None:
    tls = servers.tls(asks_clients=True)
    certificate, key = tls.client(PASSWORD)
    files = f"{certificate},{key},not-{PASSWORD}"
    with make(servers.echo(tls), network_ca_file=tls.ca_file, client_certificate=files) as probe:
        fails(probe, "RT_ERROR_TLS", text=str(key))


def test_min_tls_is_kept(make: Callable[..., Probe], servers: Servers) -> None:
    old = servers.tls(newest=ssl.TLSVersion.TLSv1_2)
    new = servers.tls()
    with make(servers.handshakes(old), network_ca_file=old.ca_file, min_tls=13) as probe:
        fails(probe, "RT_ERROR_TLS", text="version")
    with make(servers.echo(old), network_ca_file=old.ca_file, min_tls=12) as probe:
        works(probe)
    with make(servers.echo(new), network_ca_file=new.ca_file, min_tls=13) as probe:
        works(probe)


def test_name_is_sent(make: Callable[..., Probe], servers: Servers) -> None:
    """SNI has the URL's name, even if the client connects to another address."""
    tls = servers.tls("name.invalid", "localhost")
    url = servers.echo(tls)
    port = url.split(":")[2].strip("/")
    with make(url, network_ca_file=tls.ca_file) as probe:
        works(probe)
    with make(
        url.replace("localhost", "name.invalid"),
        network_ca_file=tls.ca_file,
        resolve=f"name.invalid:{port}:127.0.0.1",
    ) as probe:
        works(probe)
    expect(tls.names_asked == ["localhost", "name.invalid"], f"asked for {tls.names_asked}")


# Which server


async def echo_once(peer: Peer) -> None:
    """Echoes one text, then closes."""
    await peer.send(peer.answer())
    opcode, payload = await peer.read_frame()
    await peer.send(frame(opcode, payload))
    await peer.send(frame(8, await peer.read_until_close()))


@also_under_valgrind
def test_unix_socket(make: Callable[..., Probe], servers: Servers) -> None:
    """The URL's host is only in the Host header."""
    hosts: list[str] = []

    async def script(peer: Peer) -> None:
        hosts.append(peer.header("Host"))
        await echo_once(peer)

    path = servers.folder / f"plain-{id(hosts)}.socket"
    servers.script(script, path=path)
    with make("ws://name.invalid/", unix_socket=path, compression=False) as probe:
        works(probe)
    expect(hosts == ["name.invalid"], f"hosts {hosts}")


def test_unix_socket_with_tls(make: Callable[..., Probe], servers: Servers) -> None:
    """The certificate is for the URL's host."""
    tls = servers.tls("name.invalid")
    path = servers.folder / "tls.socket"
    servers.script(echo_once, tls, path)
    options = {"network_ca_file": tls.ca_file, "unix_socket": path, "compression": False}
    with make("wss://name.invalid/", **options) as probe:
        works(probe)
    with make("wss://other.invalid/", **options) as probe:
        fails(probe, "RT_ERROR_TLS", text="other.invalid")


def test_missing_unix_socket(make: Callable[..., Probe], servers: Servers) -> None:
    path = servers.folder / "nothing"
    with make("ws://localhost/", unix_socket=path) as probe:
        fails(probe, "RT_ERROR_CONNECT", text=str(path))


@also_under_valgrind
def test_resolve_does_not_leak(make: Callable[..., Probe], servers: Servers) -> None:
    """An address set for a name on one connection does not apply to others on the same loop."""
    url = servers.echo()
    port = url.split(":")[2].strip("/")
    name = f"ws://name.invalid:{port}/"
    with make(name, resolve=f"name.invalid:{port}:127.0.0.1") as probe:
        probe.expect("open .*")
        probe.ask(f"other {name}", "other error RT_ERROR_RESOLVE .*name.invalid.*")
        probe.ask(f"other {url}", "other open")
        probe.close()


# Which address


async def until_closed(peer: Peer) -> None:
    await peer.send(peer.answer())
    await peer.send(frame(8, await peer.read_until_close()))


def by_name(url: str) -> str:
    """libcurl resolves this name to ::1 and 127.0.0.1 itself, ::1 first."""
    return url.replace("127.0.0.1", "localhost").replace("[::1]", "localhost")


def test_ip_version_is_kept(make: Callable[..., Probe], servers: Servers) -> None:
    hosts = {4: "127.0.0.1", 6: "::1"}
    for version, other in ((4, 6), (6, 4)):
        family = socket.AF_INET6 if other == 6 else socket.AF_INET
        with socket.socket(family) as reserved:
            # Bound and not listening, so the port refuses and no other program can have it.
            while True:
                url = servers.script(until_closed, host=hosts[version])
                with contextlib.suppress(OSError):
                    reserved.bind((hosts[other], int(url.strip("/").rpartition(":")[2])))
                    break
            with make(by_name(url), ip_version=version) as probe:
                probe.expect("open .*")
                probe.ask("socket", f"socket v{version} .*")
                probe.close()
            with make(by_name(url), ip_version=other) as probe:
                fails(probe, "RT_ERROR_CONNECT")


def test_refused_ipv6_falls_back(make: Callable[..., Probe], servers: Servers) -> None:
    with make(by_name(servers.script(until_closed))) as probe:
        probe.expect("open .*")
        probe.ask("socket", "socket v4 .*")
        probe.close()


def test_stalled_ipv6_falls_back(make: Callable[..., Probe], servers: Servers) -> None:
    """Happy eyeballs, RFC 8305: if IPv6 does not answer at all, IPv4 is tried meanwhile."""
    with contextlib.ExitStack() as stack:
        url = servers.script(until_closed)
        while not stall(stack, int(url.split(":")[2].strip("/"))):
            url = servers.script(until_closed)
        with make(by_name(url), ip_version=6, open_timeout_ms=500) as probe:
            fails(probe, "RT_ERROR_TIMEOUT", text="cannot connect")
        # Without a timeout only the other address can open it.
        with make(by_name(url), open_timeout_ms=0) as probe:
            probe.expect("open .*")
            probe.ask("socket", "socket v4 .*")
            probe.close()


def stall(stack: contextlib.ExitStack, port: int) -> bool:
    """Makes this port of ::1 swallow connections: its listener's queue is full. Returns False if
    another program has the port."""
    listener = stack.enter_context(socket.socket(socket.AF_INET6))
    try:
        listener.bind(("::1", port))
    except OSError:
        return False
    listener.listen(0)
    for _ in range(16):
        filler = stack.enter_context(socket.socket(socket.AF_INET6))
        filler.settimeout(0.2)
        try:
            filler.connect(("::1", port))
        except TimeoutError:
            return True
    raise Failed("a listener with a full queue still accepts connections")


# From which address


def test_interface(make: Callable[..., Probe], servers: Servers) -> None:
    """By its name, and by an address."""
    sources: list[str] = []

    async def script(peer: Peer) -> None:
        sources.append(peer.writer.get_extra_info("peername")[0])
        await until_closed(peer)

    for interface in ("lo", "127.0.0.1", "127.0.0.9"):
        with make(servers.script(script), interface=interface) as probe:
            probe.expect("open .*")
            probe.close()
    expect(sources[1:] == ["127.0.0.1", "127.0.0.9"], f"{sources}")


def test_interface_that_cannot_be_used(make: Callable[..., Probe], servers: Servers) -> None:
    url = servers.script(until_closed)
    for interface, cause in (
        ("nothing0", "no such device"),
        ("192.0.2.77", "cannot assign requested address"),
        ("::1", "cannot assign requested address"),
    ):
        with make(url, interface=interface) as probe:
            fails(probe, "RT_ERROR_CONNECT", text=f'{cause} for the interface "{interface}"')


# Socket options


def sockets(probe: Probe) -> dict[str, int]:
    probe.expect("open .*")
    words = probe.ask("socket", "socket v. (.*)")[1].split()
    return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}


def test_socket_options_by_default(make: Callable[..., Probe], servers: Servers) -> None:
    with make(servers.echo()) as probe:
        found = sockets(probe)
        probe.close()
    expect(found["no_delay"] == 1 and found["keep_alive"] == 0, f"by default {found}")


def check_options(probe: Probe, usual: int) -> None:
    found = sockets(probe)
    probe.close()
    kept = {name: found[name] for name in ("no_delay", "keep_alive", "idle", "interval")}
    expect(
        kept == {"no_delay": 0, "keep_alive": 1, "idle": 7, "interval": 7},
        f"keep-alive of 7.9 s without no-delay became {kept}",
    )
    # Linux doubles the requested size (socket(7)); other kernels need not.
    wanted = (usual, 2 * usual)
    expect(found["receive_buffer"] in wanted, f"receive buffer {found}, not one of {wanted}")


OPTIONS = {"no_delay": False, "keep_alive_ms": 7_900, "receive_buffer_bytes": 30_000}


def test_socket_options_are_set(make: Callable[..., Probe], servers: Servers) -> None:
    with make(servers.echo(), **OPTIONS) as probe:
        check_options(probe, 30_000)


def test_socket_options_are_set_under_tls(make: Callable[..., Probe], servers: Servers) -> None:
    tls = servers.tls()
    with make(servers.echo(tls), network_ca_file=tls.ca_file, **OPTIONS) as probe:
        check_options(probe, 30_000)


def test_a_slow_message_is_not_idle(make: Callable[..., Probe], servers: Servers) -> None:
    """Each byte of a small message counts, whatever the pings do."""
    count = 10

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        for byte in bytes((0x82, count)) + bytes(count):
            # About three times as long as the peer may be idle, in all.
            await peer.read_frame()
            await peer.send(bytes((byte,)))
        await peer.send(frame(8, await peer.read_until_close()))

    with make(servers.script(script), ping_interval_ms=300, idle_timeout_ms=1200) as probe:
        probe.expect("open .*")
        probe.expect(f"binary {count} .*")
        probe.close()


def test_idle_timeout(make: Callable[..., Probe], servers: Servers) -> None:
    """Messages reset the timeout, pings do not."""
    codes: list[int] = []

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer() + frame(1, b"one") + frame(9, b""))
        codes.append(int.from_bytes((await peer.read_until_close())[:2], "big"))

    url = servers.script(script)
    with make(url, idle_timeout_ms=200, ping_interval_ms=20) as probe:
        probe.expect("open .*")
        probe.expect("text 3 .*")
        while (line := probe.next()) == "pong measured":
            pass
        expect(line.startswith("error RT_ERROR_TIMEOUT "), f"received {line!r}")
        probe.expect("close 1001 unclean.*")
        probe.end()
    servers.settle()
    expect(codes == [1001], f"the server saw {codes}")
