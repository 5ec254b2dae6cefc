import Engine
import Session
import Wire

// Chapter: network. How connections are made: TLS, proxies, addresses, sockets.
//
//     rt_network *network;
//     rt_websocket *websocket;
//     rt_network_new(&network);
//     rt_network_set_ca_file(network, "/etc/ssl/certs/company.pem");
//     rt_websocket_new(NULL, "wss://example.org/", &websocket);
//     rt_websocket_set_network(websocket, network);  // copied
//     rt_websocket_free(websocket);
//     rt_network_free(network);

/// Settings for making connections. One network can serve any number of objects: each copies the
/// settings when it receives the network (`rt_websocket_set_network`), so the network may be
/// changed or freed right after. It belongs to no loop. Only one thread at a time may use it. Since
/// 0.1.
public typealias rt_network = OpaquePointer

/// A version of TLS. Since 0.1.
public typealias rt_tls_version = Int32

/// Values of `rt_tls_version`. Since 0.1.
public enum RT_TLS: Int32 {
    /// RFC 5246.
    case V1_2 = 12
    /// RFC 8446.
    case V1_3 = 13
}

/// Which IP versions are used to connect. Since 0.1.
public typealias rt_ip_version = Int32

/// Values of `rt_ip_version`. Since 0.1.
public enum RT_IP: Int32 {
    /// Both; whichever connects first is used (RFC 8305). The default.
    case ANY = 0
    /// IPv4 only.
    case V4 = 4
    /// IPv6 only.
    case V6 = 6
}

/// Creates a network with the defaults: the system's certificates, TLS 1.2 or newer, and the
/// proxies of the environment (http_proxy for ws, HTTPS_PROXY for wss, ALL_PROXY, NO_PROXY). If a
/// server chooses a finite-field Diffie-Hellman group of more than 4,096 bits, which takes up to a
/// second to compute, the connection fails with RT_ERROR_TLS.
///
/// If the environment names certificates, they are trusted instead of the system's: CURL_CA_BUNDLE
/// (a PEM file), or else SSL_CERT_FILE (a PEM file) and SSL_CERT_DIR (a folder of hashed names). A
/// program that runs with more rights than its user (such as setuid) ignores these variables. Any
/// thread. Since 0.1.
/// - Parameter out: receives the network; free it with `rt_network_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_network_new")
public func rt_network_new(_ out: UnsafeMutablePointer<rt_network?>?) -> rt_status {
    border { () throws(RealtimeError) in
        try required(out, "out").pointee = NetworkHandle.export(NetworkHandle())
    }
}

/// Frees a network. Objects that received it keep their copy. NULL is accepted. Any thread. Since
/// 0.1.
@_cdecl("rt_network_free")
public func rt_network_free(_ network: rt_network?) { NetworkHandle.release(network) { _ in } }

/// Sets the client certificate, which is presented to servers that ask for one. Since 0.1.
/// - Parameter certificate: path of a PEM file with the certificate, followed by its chain.
/// - Parameter key: path of a PEM file with the private key; NULL if it is in the same file.
/// - Parameter password: the key's password, which is never logged; NULL for none.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT. If a file cannot be used, connections fail with
///   RT_ERROR_TLS.
@_cdecl("rt_network_set_client_certificate")
public func rt_network_set_client_certificate(
    _ network: rt_network?, _ certificate: UnsafePointer<CChar>?, _ key: UnsafePointer<CChar>?,
    _ password: UnsafePointer<CChar>?
) -> rt_status {
    networkOptions(network) { (options) throws(RealtimeError) in
        try options.setClientCertificate(
            text(certificate, "certificate"), keyFile: optionalText(key, "key"),
            keyPassword: optionalText(password, "password"))
    }
}

/// Adds a pinned public key. Only servers that have one of the pinned keys are accepted, and all
/// other checks still apply. Since 0.1.
/// - Parameter pin: "sha256//" and the base64 of the SHA-256 of the key's SubjectPublicKeyInfo (RFC
///   7469 §2.4): `openssl x509 -in cert.pem -pubkey -noout | openssl pkey -pubin -outform der |
///   openssl dgst -sha256 -binary | base64`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT. With another key, connections fail with
///   RT_ERROR_TLS.
@_cdecl("rt_network_add_pinned_public_key")
public func rt_network_add_pinned_public_key(
    _ network: rt_network?, _ pin: UnsafePointer<CChar>?
) -> rt_status {
    networkOptions(network) { (options) throws(RealtimeError) in
        try options.addPinnedPublicKey(text(pin, "pin"))
    }
}

/// Connects through this proxy, whatever the environment says. A proxy that refuses the tunnel
/// gives RT_ERROR_PROXY and is retried like an unreachable one. Event sources, long polls and
/// requests treat its 407 as a response instead; when they use a tunnel, only the proxy receives
/// their `Proxy-Authorization` header. Since 0.1.
/// - Parameter url: `http://` or `https://` (CONNECT, RFC 9110 §9.3.6), `socks5h://` (the proxy
///   resolves names), `socks5://`, `socks4a://` or `socks4://`, with `user:password@` if the proxy
///   requires it. The default port is 443 for https, 1080 for all others; nothing may follow host
///   and port. "" for no proxy at all. An HTTP proxy forwards requests to `http://` URLs; its own
///   responses then look like the server's, except for 407.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME.
@_cdecl("rt_network_set_proxy")
public func rt_network_set_proxy(
    _ network: rt_network?, _ url: UnsafePointer<CChar>?
) -> rt_status {
    networkOptions(network) { (options) throws(RealtimeError) in
        try options.setProxy(text(url, "url"))
    }
}

/// Sets the hosts that are reached without a proxy. Replaces NO_PROXY. Since 0.1.
/// - Parameter hosts: names, domains, addresses and networks such as 10.0.0.0/8, separated by
///   commas; "*" for all, "" for none. A name also matches its subdomains. A name or an address may
///   have a port, which then must be the URL's: "example.org:8080", "[::1]:8080".
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for an entry that cannot match any host, such as
///   10.0.0.0/99 or *.example.org.
@_cdecl("rt_network_set_no_proxy")
public func rt_network_set_no_proxy(
    _ network: rt_network?, _ hosts: UnsafePointer<CChar>?
) -> rt_status {
    networkOptions(network) { (options) throws(RealtimeError) in
        try options.setNoProxy(text(hosts, "hosts"))
    }
}

/// Maps a host and port to an address, without asking the resolver. If a host is given several
/// addresses, the last one is used. Since 0.1.
/// - Parameter port: 1 to 65,535.
/// - Parameter address: IPv4 or IPv6, without brackets.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_network_add_resolve")
public func rt_network_add_resolve(
    _ network: rt_network?, _ host: UnsafePointer<CChar>?, _ port: Int32,
    _ address: UnsafePointer<CChar>?
) -> rt_status {
    networkOptions(network) { (options) throws(RealtimeError) in
        try options.addResolve(
            host: text(host, "host"), port: Int(port), address: text(address, "address"))
    }
}

/// Changes a network's options.
func networkOptions(
    _ network: rt_network?, _ body: (inout NetworkConfiguration) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in try body(&NetworkHandle.borrow(network).configuration) }
}

/// The configuration of a network handle; the default one for NULL.
func networkConfiguration(_ network: rt_network?) throws(RealtimeError) -> NetworkConfiguration {
    guard let network else { return NetworkConfiguration() }
    return try NetworkHandle.borrow(network).configuration
}
