"""How connections are made: TLS, proxies, addresses, sockets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from .abi import rt_status
from .errors import InvalidArgument, InvalidProxy, InvalidURI, check, naming
from .handle import Handle, new
from .loader import lib
from .naming import kind_of
from .option_kinds import describe
from .option_tables import NETWORK_OPTIONS, NetworkOptions
from .values import StrPath, invalid, number, path, text, texts


@dataclass(frozen=True)
class Network(NetworkOptions):
    """How connections are made. Any number of them may share one, by ``network=``.

    Durations are in seconds, sizes in bytes.

    :param client_certificate: a PEM file, sent to servers that request a certificate. Default None.
    :param client_key: the PEM file of its key. Default None: the key is in the same file.
    :param client_key_password: the password of that key. Default None: it has none.
    :param pinned_public_keys: accept only servers with one of these public keys, in addition to all
        other checks: ``sha256//`` and the base64 of the SHA-256 of each SubjectPublicKeyInfo
        (RFC 7469 §2.4). Default (): any.
    :param proxy: ``http://`` or ``https://`` (CONNECT), ``socks5h://`` (the proxy resolves names),
        ``socks5://``, ``socks4a://`` or ``socks4://``, with ``user:password@`` if a proxy asks for
        them, and nothing after host and port (default 443 for https, 1080 for all others); None for
        no proxy. Default True: from the environment (http_proxy for ws, HTTPS_PROXY for wss,
        ALL_PROXY, NO_PROXY).
    :param no_proxy: hosts to reach without a proxy: names, each of which includes its subdomains,
        addresses, networks such as ``10.0.0.0/8``; ``"*"`` for all. A name or an address may have a
        port, which then must be the URL's: ``"example.org:8080"``, ``"[::1]:8080"``. An entry that
        can match no host raises InvalidArgument. Default None: from NO_PROXY.
    :param resolve: fixed addresses for hosts: ``{("example.org", 443): "192.0.2.1"}``.
        Default {}.
    """

    client_certificate: StrPath | None = None
    client_key: StrPath | None = None
    client_key_password: str | None = field(default=None, repr=False)
    pinned_public_keys: Iterable[str] = ()
    # Excluded from repr: it may contain a password.
    proxy: str | Literal[True] | None = field(default=True, repr=False)
    no_proxy: Iterable[str] | None = None
    resolve: Mapping[tuple[str, int], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # At once, because the object's text shows these names.
        for name in ("ca_file", "ca_path", "client_certificate", "client_key", "unix_socket"):
            value = getattr(self, name)
            if value is not None:
                path(value, name)

    def make(self) -> Handle:
        """Creates its handle in the C interface, which copies it wherever it is passed."""
        network = new(lib.rt_network_new, lib.rt_network_free)
        NETWORK_OPTIONS.apply(network, vars(self))
        self._apply_trust(network)
        self._apply_route(network)
        return network

    def _apply_trust(self, network: Handle) -> None:
        if self.client_certificate is not None:
            certificate = path(self.client_certificate, "client_certificate")
            key = None if self.client_key is None else path(self.client_key, "client_key")
            word = self.client_key_password
            password = None if word is None else text(word, "client_key_password")
            check(lib.rt_network_set_client_certificate(network, certificate, key, password))
        elif self.client_key is not None or self.client_key_password is not None:
            raise invalid("client_key or client_key_password is given without client_certificate")
        for pin in texts(self.pinned_public_keys, "pinned_public_keys"):
            try:
                check(lib.rt_network_add_pinned_public_key(network, pin))
            except InvalidArgument as error:
                raise naming("pinned_public_keys", error) from None

    def _apply_route(self, network: Handle) -> None:
        if self.proxy is not True:
            _set_proxy(network, self.proxy)
        if self.no_proxy is not None:
            hosts = b",".join(texts(self.no_proxy, "no_proxy"))
            check(lib.rt_network_set_no_proxy(network, hosts))
        if not isinstance(self.resolve, Mapping):
            kind = kind_of(self.resolve)
            raise TypeError(f"resolve is {kind}; a mapping is expected")
        for one, address in self.resolve.items():
            if not isinstance(one, tuple) or len(one) != 2:
                raise TypeError(f"a key of resolve is {kind_of(one)}; (host, port) is expected")
            host, port = one
            name = text(host, "a host of resolve")
            at = text(address, "an address of resolve")
            port = number(port, "a port of resolve", 1, 65535)
            check(lib.rt_network_add_resolve(network, name, port, at))


def chosen_network(
    network: Network | None, ca_file: StrPath | None, proxy: str | Literal[True] | None
) -> Network | None:
    """The network with the two shortcuts of ``connect`` applied; None if everything is default."""
    if network is not None and not isinstance(network, Network):
        raise TypeError(f"network is {kind_of(network)}; a Network is expected")
    if ca_file is not None:
        network = replace(network or Network(), ca_file=ca_file)
    if proxy is not True:
        network = replace(network or Network(), proxy=proxy)
    return network


def _set_proxy(network: Handle, proxy: str | None) -> None:
    # In C "" means no proxy, which is None here; "" is more likely a mistake.
    url = b"" if proxy is None else text(proxy, "proxy")
    if not url and proxy is not None:
        raise InvalidProxy(rt_status.ERROR_INVALID_URL, 'proxy is ""; use None for no proxy')
    try:
        check(lib.rt_network_set_proxy(network, url))
    except InvalidURI as error:
        raise InvalidProxy(error.status, error.message) from None


describe(Network, NETWORK_OPTIONS)
