"""Connections through real proxies, tinyproxy and microsocks, with and without credentials."""

import re
from collections.abc import Callable

from fault_proxy import FaultProxy, Ways
from harness import Probe, also_under_valgrind, expect, fails
from proxies import Microsocks, Proxy, Tinyproxy, free_port
from servers import Peer, Servers

USER = "ann"
PASSWORD = "s3cret-proxy-password"
#: Nobody listens there; the port is reserved for an old service.
DEAD = "http://127.0.0.1:1"


def passes(probe: Probe, proxy: Proxy, url: str) -> None:
    """It works, and the proxy's log has the connection."""
    works(probe)
    port = port_of(url)
    expect(led_to(proxy, port), f"the proxy did not lead to port {port}: {proxy.log()}")


def passes_by(probe: Probe, proxy: Proxy, url: str) -> None:
    """It works, and the proxy's log does not have the connection."""
    works(probe)
    expect(not led_to(proxy, port_of(url)), f"the proxy led there: {proxy.log()}")


def works(probe: Probe) -> None:
    probe.expect("open .*")
    checksum = probe.ask("text 1000 1", "sent (.*)")[1]
    probe.expect(f"text 1000 {checksum}")
    probe.close()


def port_of(url: str) -> str:
    return url.split(":")[2].strip("/")


def led_to(proxy: Proxy, port: str) -> bool:
    return re.search(rf"\b{port}\b", proxy.log()) is not None


# CONNECT


def test_connect_without_credentials(make: Callable[..., Probe], servers: Servers) -> None:
    url = servers.echo()
    with Tinyproxy(servers.folder) as proxy, make(url, proxy=proxy.url()) as probe:
        passes(probe, proxy, url)


@also_under_valgrind
def test_connect_with_credentials(make: Callable[..., Probe], servers: Servers) -> None:
    url = servers.echo()
    with Tinyproxy(servers.folder, USER, PASSWORD) as proxy:
        with make(url, proxy=proxy.url(USER, PASSWORD)) as probe:
            passes(probe, proxy, url)


def test_connect_carries_tls(make: Callable[..., Probe], servers: Servers) -> None:
    tls = servers.tls()
    url = servers.echo(tls)
    with Tinyproxy(servers.folder, USER, PASSWORD) as proxy:
        with make(url, ca_file=tls.ca_file, proxy=proxy.url(USER, PASSWORD)) as probe:
            passes(probe, proxy, url)


def test_connect_over_tls(make: Callable[..., Probe], servers: Servers) -> None:
    """The connection to the proxy is encrypted, and the same authorities verify the proxy."""
    tls, server_tls = servers.tls(), servers.tls()
    server_tls.authority.cert_pem.write_to_path(str(tls.ca_file), append=True)
    with Tinyproxy(servers.folder, USER, PASSWORD) as proxy:
        secure = FaultProxy(servers, proxy.url(), [Ways()], tls).url
        secure = secure.replace("http://127.0.0.1", f"https://{USER}:{PASSWORD}@localhost")
        for url in (servers.echo(), servers.echo(server_tls)):
            with make(url, network_ca_file=tls.ca_file, proxy=secure) as probe:
                passes(probe, proxy, url)
            with make(url, network_ca_file=server_tls.ca_file, proxy=secure) as probe:
                fails(probe, "RT_ERROR_TLS", text="certificate")
            with make(url, insecure=True, proxy=secure) as probe:
                passes(probe, proxy, url)
        plain = servers.echo()
        for name in ("http_proxy", "ALL_PROXY"):
            with make(plain, network_ca_file=tls.ca_file, environment={name: secure}) as probe:
                passes(probe, proxy, plain)


def test_connect_refuses_credentials(make: Callable[..., Probe], servers: Servers) -> None:
    """Without credentials tinyproxy answers 407, to wrong ones 401."""
    url = servers.echo()
    with Tinyproxy(servers.folder, USER, PASSWORD) as proxy:
        for credentials in ((), (USER, f"not-{PASSWORD}")):
            with make(url, proxy=proxy.url(*credentials)) as probe:
                probe.expect(r"refused 40[17] .*")
                fails(probe, "RT_ERROR_PROXY", text="answered 40")


def test_connect_is_refused(make: Callable[..., Probe], servers: Servers) -> None:
    with Tinyproxy(servers.folder, refuses=True) as proxy:
        with make(servers.echo(), proxy=proxy.url()) as probe:
            probe.expect(r"refused 403 .*")
            fails(probe, "RT_ERROR_PROXY", text="answered 403 to CONNECT")


def test_dead_proxy(make: Callable[..., Probe], servers: Servers) -> None:
    for proxy in (DEAD, DEAD.replace("http", "socks5")):
        with make(servers.echo(), proxy=proxy) as probe:
            fails(probe, "RT_ERROR_PROXY", text="through the proxy 127.0.0.1:1: ")
    with make(servers.echo(), environment={"ALL_PROXY": DEAD}) as probe:
        fails(probe, "RT_ERROR_PROXY", text="through the proxy 127.0.0.1:1: ")


def test_proxy_that_breaks_off(make: Callable[..., Probe], servers: Servers) -> None:
    async def ends(peer: Peer) -> None:
        pass

    async def ends_in_the_answer(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 Connec")

    async def speaks_otherwise(peer: Peer) -> None:
        await peer.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")

    for script in (ends, ends_in_the_answer, speaks_otherwise):
        with make(
            "ws://name.invalid/", proxy=servers.script(script).replace("ws", "http")
        ) as probe:
            fails(probe, "RT_ERROR_PROXY")


def test_endless_answer_of_a_proxy(make: Callable[..., Probe], servers: Servers) -> None:
    """Endless headers end by their size, not by time."""

    async def script(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 Connected\r\n")
        while True:
            await peer.send(b"X-More: " + b"x" * 1000 + b"\r\n")

    proxy = servers.script(script).replace("ws", "http")
    with make("ws://name.invalid/", proxy=proxy, open_timeout_ms=0) as probe:
        fails(probe, "RT_ERROR_PROXY")


def test_silent_proxy_times_out(make: Callable[..., Probe], servers: Servers) -> None:
    """The proxy receives the request and never answers."""

    url = servers.script(lambda peer: peer.read_to_end())
    for scheme in ("http", "socks5"):
        proxy = url.replace("ws", scheme)
        with make("ws://name.invalid/", proxy=proxy, open_timeout_ms=300) as probe:
            place = proxy.split("/")[2]
            fails(probe, "RT_ERROR_TIMEOUT", text=f"through the proxy {place}")


# SOCKS5


def test_socks_without_credentials(make: Callable[..., Probe], servers: Servers) -> None:
    url = servers.echo()
    with Microsocks(servers.folder) as proxy, make(url, proxy=proxy.url()) as probe:
        passes(probe, proxy, url)


@also_under_valgrind
def test_socks_with_credentials(make: Callable[..., Probe], servers: Servers) -> None:
    url = servers.echo()
    with Microsocks(servers.folder, USER, PASSWORD) as proxy:
        with make(url, proxy=proxy.url(USER, PASSWORD)) as probe:
            passes(probe, proxy, url)


def test_socks_carries_tls(make: Callable[..., Probe], servers: Servers) -> None:
    tls = servers.tls()
    url = servers.echo(tls)
    with Microsocks(servers.folder) as proxy:
        with make(url, ca_file=tls.ca_file, proxy=proxy.url()) as probe:
            passes(probe, proxy, url)


def test_socks_refuses_credentials(make: Callable[..., Probe], servers: Servers) -> None:
    """Without credentials, and with wrong ones."""
    url = servers.echo()
    with Microsocks(servers.folder, USER, PASSWORD) as proxy:
        for credentials in ((), (USER, f"not-{PASSWORD}")):
            with make(url, proxy=proxy.url(*credentials)) as probe:
                fails(probe, "RT_ERROR_PROXY")


def test_socks_leaves_names_to_the_proxy(make: Callable[..., Probe], servers: Servers) -> None:
    """With socks5h the proxy gets the name itself: an address that we set for it is not used."""
    port = port_of(servers.echo())
    url = f"ws://name.invalid:{port}/"
    resolve = f"name.invalid:{port}:127.0.0.1"
    with Microsocks(servers.folder) as proxy:
        with make(url, proxy=proxy.url(scheme="socks5h"), resolve=resolve) as probe:
            fails(probe, "RT_ERROR_PROXY")


def test_socks_with_names_that_we_resolve(make: Callable[..., Probe], servers: Servers) -> None:
    """With socks5 the proxy gets an address."""
    port = port_of(servers.echo())
    url = f"ws://name.invalid:{port}/"
    resolve = f"name.invalid:{port}:127.0.0.1"
    with Microsocks(servers.folder) as proxy:
        with make(url, proxy=proxy.url(scheme="socks5"), resolve=resolve) as probe:
            passes(probe, proxy, url)


def test_socks_cannot_reach_the_server(make: Callable[..., Probe], servers: Servers) -> None:
    with Microsocks(servers.folder) as proxy:
        with make(f"ws://127.0.0.1:{free_port()}/", proxy=proxy.url()) as probe:
            fails(probe, "RT_ERROR_PROXY")


# The environment


def test_environment_is_read(make: Callable[..., Probe], servers: Servers) -> None:
    """http_proxy and ALL_PROXY apply to ws, HTTPS_PROXY does not."""
    url = servers.echo()
    with Tinyproxy(servers.folder) as proxy:
        with make(url, environment={"http_proxy": proxy.url()}) as probe:
            passes(probe, proxy, url)
    with Tinyproxy(servers.folder) as proxy:
        with make(url, environment={"ALL_PROXY": proxy.url()}) as probe:
            passes(probe, proxy, url)
    with make(url, environment={"HTTPS_PROXY": DEAD, "HTTP_PROXY": DEAD}) as probe:
        works(probe)


def test_environment_of_tls(make: Callable[..., Probe], servers: Servers) -> None:
    """HTTPS_PROXY applies to wss, http_proxy does not."""
    tls = servers.tls()
    url = servers.echo(tls)
    with Tinyproxy(servers.folder, USER, PASSWORD) as proxy:
        environment = {"HTTPS_PROXY": proxy.url(USER, PASSWORD), "http_proxy": DEAD}
        with make(url, ca_file=tls.ca_file, environment=environment) as probe:
            passes(probe, proxy, url)


def test_environment_names_hosts_without_proxy(
    make: Callable[..., Probe], servers: Servers
) -> None:
    url = servers.echo()
    for hosts in ("127.0.0.1", "example.org,127.0.0.0/8", "*"):
        with Tinyproxy(servers.folder) as proxy:
            environment = {"http_proxy": proxy.url(), "NO_PROXY": hosts}
            with make(url, environment=environment) as probe:
                passes_by(probe, proxy, url)
    with Tinyproxy(servers.folder) as proxy:
        environment = {"http_proxy": proxy.url(), "NO_PROXY": "127.0.0.2,example.org"}
        with make(url, environment=environment) as probe:
            passes(probe, proxy, url)


def test_option_overrides_environment(make: Callable[..., Probe], servers: Servers) -> None:
    url = servers.echo()
    dead = {"http_proxy": DEAD, "ALL_PROXY": DEAD}
    with make(url, proxy="", environment=dead) as probe:
        works(probe)
    with Tinyproxy(servers.folder) as proxy:
        with make(url, proxy=proxy.url(), environment=dead) as probe:
            passes(probe, proxy, url)


def test_no_proxy_overrides_environment(make: Callable[..., Probe], servers: Servers) -> None:
    url = servers.echo()
    with make(url, proxy=DEAD, no_proxy="example.org,127.0.0.1") as probe:
        works(probe)
    with make(url, no_proxy="127.0.0.0/8", environment={"http_proxy": DEAD}) as probe:
        works(probe)
    with Tinyproxy(servers.folder) as proxy:
        environment = {"http_proxy": proxy.url(), "NO_PROXY": "127.0.0.1"}
        with make(url, no_proxy="", environment=environment) as probe:
            passes(probe, proxy, url)
