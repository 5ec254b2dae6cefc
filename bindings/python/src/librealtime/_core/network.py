"""How connections are made: TLS, proxies, addresses, sockets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from .abi import rt_ip_version, rt_status, rt_tls_version
from .errors import InvalidProxy, InvalidURI, check
from .handle import Handle, new
from .loader import lib
from .values import StrPath, invalid, milliseconds, number, path, strings, text

_IP_VERSIONS = {None: rt_ip_version.ANY, 4: rt_ip_version.V4, 6: rt_ip_version.V6}
_TLS_VERSIONS = {"1.2": rt_tls_version.V1_2, "1.3": rt_tls_version.V1_3}


@dataclass(frozen=True)
class Network:
    """How connections are made; one serves any number of them, by ``network=``.

    Durations are in seconds, sizes in bytes.

    :param ca_file: a PEM file of certificates to trust instead of the system's. Default None: those
        that the environment names by CURL_CA_BUNDLE, or else by SSL_CERT_FILE and SSL_CERT_DIR.
    :param ca_path: a folder of them, as ``openssl rehash`` names them. Default None.
    :param client_certificate: a PEM file, shown to servers that ask for one. Default None.
    :param client_key: the PEM file of its key. Default None: it is in the same file.
    :param client_key_password: of that key. Default None: it has none.
    :param pinned_public_keys: the only public keys of servers that are accepted, beside all other
        checks: ``sha256//`` and the base64 of the SHA-256 of each SubjectPublicKeyInfo (RFC 7469
        §2.4). Default (): any.
    :param min_tls_version: ``"1.2"`` (the default) or ``"1.3"``.
    :param insecure_skip_verification: accepts any certificate for any name, so that whoever sits
        between can read and change everything; for tests alone. Default False.
    :param proxy: ``http://`` or ``https://`` (CONNECT), ``socks5h://`` (the proxy resolves names),
        ``socks5://``, ``socks4a://`` or ``socks4://``, with ``user:password@`` where the proxy asks
        for them, and nothing behind host and port (443 for https, 1080 for all others); None for no
        proxy. Default True: what the environment says (http_proxy for ws, HTTPS_PROXY for wss,
        ALL_PROXY, NO_PROXY).
    :param no_proxy: hosts reached without a proxy: names, which stand for all that end in "." and
        them too, addresses, networks such as ``10.0.0.0/8``; ``"*"`` for all. An entry that can
        match no host raises InvalidArgument. Default None: what NO_PROXY says.
    :param unix_socket: connects to this Unix socket instead of the URL's host, without a proxy.
        Default None.
    :param resolve: addresses that need no resolver: ``{("example.org", 443): "192.0.2.1"}``.
        Default {}.
    :param ip_version: 4 or 6 for these alone. Default None: both, the faster one first (RFC 8305).
    :param tcp_no_delay: small writes go out at once (TCP_NODELAY). Default True.
    :param tcp_keep_alive: how long a connection may be idle before the kernel probes the peer, and
        the time between probes, in whole seconds from 1 to 32,767. Default None: a WebSocket is not
        probed, since it has pings; event sources, long polls and requests are, after 20 s, and
        notice a link that is dead without a word within 35 s.
    :param receive_buffer: the size of the kernel's receive buffer (SO_RCVBUF); a small one limits
        long fast paths. Default None: the kernel's choice.
    """

    ca_file: StrPath | None = None
    ca_path: StrPath | None = None
    client_certificate: StrPath | None = None
    client_key: StrPath | None = None
    client_key_password: str | None = field(default=None, repr=False)
    pinned_public_keys: Iterable[str] = ()
    min_tls_version: Literal["1.2", "1.3"] = "1.2"
    insecure_skip_verification: bool = False
    # It may hold a password.
    proxy: str | Literal[True] | None = field(default=True, repr=False)
    no_proxy: Iterable[str] | None = None
    unix_socket: StrPath | None = None
    resolve: Mapping[tuple[str, int], str] = field(default_factory=dict)
    ip_version: Literal[4, 6] | None = None
    tcp_no_delay: bool = True
    tcp_keep_alive: float | None = None
    receive_buffer: int | None = None

    def make(self) -> Handle:
        """The C interface's; who is given it takes a copy."""
        network = new(lib.rt_network_new, lib.rt_network_free)
        self._apply_trust(network)
        self._apply_route(network)
        check(lib.rt_network_set_tcp_no_delay(network, bool(self.tcp_no_delay)))
        if self.tcp_keep_alive is not None:
            interval = milliseconds(self.tcp_keep_alive, "tcp_keep_alive", least=1)
            check(lib.rt_network_set_tcp_keep_alive_ms(network, interval))
        if self.receive_buffer is not None:
            size = number(self.receive_buffer, "receive_buffer", 1, 2**31 - 1)
            check(lib.rt_network_set_receive_buffer_bytes(network, size))
        return network

    def _apply_trust(self, network: Handle) -> None:
        if self.ca_file is not None:
            check(lib.rt_network_set_ca_file(network, path(self.ca_file, "ca_file")))
        if self.ca_path is not None:
            check(lib.rt_network_set_ca_path(network, path(self.ca_path, "ca_path")))
        if self.client_certificate is not None:
            certificate = path(self.client_certificate, "client_certificate")
            key = None if self.client_key is None else path(self.client_key, "client_key")
            word = self.client_key_password
            password = None if word is None else text(word, "client_key_password")
            check(lib.rt_network_set_client_certificate(network, certificate, key, password))
        elif self.client_key is not None or self.client_key_password is not None:
            raise invalid("client_key and its password need a client_certificate")
        for pin in strings(self.pinned_public_keys, "pinned_public_keys"):
            check(lib.rt_network_add_pinned_public_key(network, text(pin, "a pinned public key")))
        version = _named(self.min_tls_version, _TLS_VERSIONS, "min_tls_version")
        check(lib.rt_network_set_min_tls_version(network, version))
        skip = bool(self.insecure_skip_verification)
        check(lib.rt_network_set_insecure_skip_verification(network, skip))

    def _apply_route(self, network: Handle) -> None:
        if self.proxy is not True:
            _set_proxy(network, self.proxy)
        if self.no_proxy is not None:
            hosts = ",".join(strings(self.no_proxy, "no_proxy"))
            check(lib.rt_network_set_no_proxy(network, text(hosts, "no_proxy")))
        if self.unix_socket is not None:
            name = path(self.unix_socket, "unix_socket")
            check(lib.rt_network_set_unix_socket(network, name))
        if not isinstance(self.resolve, Mapping):
            kind = type(self.resolve).__name__
            raise TypeError(f"resolve is a {kind}; a mapping is expected")
        for (host, port), address in self.resolve.items():
            name = text(host, "a host of resolve")
            at = text(address, "an address of resolve")
            port = number(port, "a port of resolve", 1, 65535)
            check(lib.rt_network_add_resolve(network, name, port, at))
        version = _named(self.ip_version, _IP_VERSIONS, "ip_version")
        check(lib.rt_network_set_ip_version(network, version))


def chosen_network(
    network: Network | None, ca_file: StrPath | None, proxy: str | Literal[True] | None
) -> Network | None:
    """The network with the two shortcuts of ``connect`` in it; None when all is as by default."""
    if network is not None and not isinstance(network, Network):
        raise TypeError(f"network is a {type(network).__name__}; a Network is expected")
    if ca_file is not None:
        network = replace(network or Network(), ca_file=ca_file)
    if proxy is not True:
        network = replace(network or Network(), proxy=proxy)
    return network


def _set_proxy(network: Handle, proxy: str | None) -> None:
    # C's "" is None here; given as such it is more likely a mistake.
    url = b"" if proxy is None else text(proxy, "proxy")
    if not url and proxy is not None:
        raise InvalidProxy(rt_status.ERROR_INVALID_URL, 'proxy is ""; None is for no proxy')
    try:
        check(lib.rt_network_set_proxy(network, url))
    except InvalidURI as error:
        raise InvalidProxy(error.status, error.message) from None


def _named(value: Any, names: Mapping[Any, int], what: str) -> int:
    if value is True or value not in names:
        known = ", ".join(repr(name) for name in names)
        raise invalid(f"{what} is {value!r}; one of {known} is expected")
    return names[value]
