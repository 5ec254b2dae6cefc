import Engine
import Session
import Wire

// Chapter: network. How connections are made: TLS, proxies, addresses, sockets.

/// How connections are made. Made once, it serves any number of objects: each copies what is set
/// when it is given to it (`rt_websocket_set_network`), so that it may be changed or freed at once.
/// It belongs to no loop, and to one thread at a time. Since 0.1.
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

/// Which addresses are connected to. Since 0.1.
public typealias rt_ip_version = Int32

/// Values of `rt_ip_version`. Since 0.1.
public enum RT_IP: Int32 {
    /// Both, the faster one first (RFC 8305). The default.
    case ANY = 0
    /// IPv4 alone.
    case V4 = 4
    /// IPv6 alone.
    case V6 = 6
}

/// Makes a network with the defaults: the system's certificates, TLS 1.2 or newer, the proxies of
/// the environment (http_proxy for ws, HTTPS_PROXY for wss, ALL_PROXY, NO_PROXY). A server that
/// chooses a finite-field Diffie-Hellman group of more than 4,096 bits, which takes up to a second
/// to use, is RT_ERROR_TLS.
///
/// If the environment names certificates, they are trusted instead of the system's: CURL_CA_BUNDLE
/// (a PEM file), or else SSL_CERT_FILE (a PEM file) and SSL_CERT_DIR (a folder of hashed names). A
/// program with more rights than its user ignores these variables. Any thread. Since 0.1.
/// - Parameter out: receives it; to be freed with `rt_network_free`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL.
@_cdecl("rt_network_new")
public func rt_network_new(_ out: UnsafeMutablePointer<rt_network?>?) -> rt_status {
    border { () throws(RealtimeError) in
        try required(out, "out").pointee = NetworkHandle.export(NetworkHandle())
    }
}

/// Gives a network back; what was made with it keeps what it copied. NULL is accepted. Any thread.
/// Since 0.1.
@_cdecl("rt_network_free")
public func rt_network_free(_ network: rt_network?) { NetworkHandle.release(network) { _ in } }

/// Shows this certificate to servers that ask for one. Since 0.1.
/// - Parameter certificate: path of a PEM file, its chain behind it.
/// - Parameter key: path of the PEM file of its key; NULL when that is in the same file.
/// - Parameter password: of the key; NULL for none. Never logged.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT. A file that cannot be used is an RT_ERROR_TLS of
///   the connection.
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

/// Accepts only servers with this public key, or another one added so, beside all other checks.
/// Since 0.1.
/// - Parameter pin: "sha256//" and the base64 of the SHA-256 of the key's SubjectPublicKeyInfo (RFC
///   7469 §2.4): `openssl x509 -in cert.pem -pubkey -noout | openssl pkey -pubin -outform der |
///   openssl dgst -sha256 -binary | base64`.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT. Another key is an RT_ERROR_TLS of the connection.
@_cdecl("rt_network_add_pinned_public_key")
public func rt_network_add_pinned_public_key(
    _ network: rt_network?, _ pin: UnsafePointer<CChar>?
) -> rt_status {
    networkOptions(network) { (options) throws(RealtimeError) in
        try options.addPinnedPublicKey(text(pin, "pin"))
    }
}

/// Connects through this proxy, whatever the environment says. One that opens no tunnel is
/// RT_ERROR_PROXY, and tried again as one that cannot be reached is. But to event sources, long
/// polls and requests its 407 is an answer, and of a tunnel it alone is shown a
/// `Proxy-Authorization` header of theirs. Since 0.1.
/// - Parameter url: `http://` or `https://` (CONNECT, RFC 9110 §9.3.6; a request to `http://` is
///   handed to it as a whole, and what it answers of its own cannot be told from the server's, but
///   for 407), `socks5h://` (the proxy resolves names), `socks5://`, `socks4a://` or `socks4://`,
///   with `user:password@` where the proxy asks for them, and nothing behind host and port; without
///   a port it is 443 for https, 1080 for all others. "" for no proxy at all.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME.
@_cdecl("rt_network_set_proxy")
public func rt_network_set_proxy(
    _ network: rt_network?, _ url: UnsafePointer<CChar>?
) -> rt_status {
    networkOptions(network) { (options) throws(RealtimeError) in
        try options.setProxy(text(url, "url"))
    }
}

/// Hosts that are reached without a proxy; in the place of NO_PROXY. Since 0.1.
/// - Parameter hosts: names, domains, addresses, networks as 10.0.0.0/8, separated by commas; "*"
///   for all, "" for none. A name stands for all that end in "." and it too.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for an entry that can match no host, such as
///   10.0.0.0/99 or *.example.org.
@_cdecl("rt_network_set_no_proxy")
public func rt_network_set_no_proxy(
    _ network: rt_network?, _ hosts: UnsafePointer<CChar>?
) -> rt_status {
    networkOptions(network) { (options) throws(RealtimeError) in
        try options.setNoProxy(text(hosts, "hosts"))
    }
}

/// Makes a host's port lead to an address without asking the resolver; for several addresses of
/// one host the last one added counts. Since 0.1.
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

/// Runs a change of a network's options.
func networkOptions(
    _ network: rt_network?, _ body: (inout NetworkConfiguration) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in try body(&NetworkHandle.borrow(network).configuration) }
}

/// The configuration of a network that an option is given; NULL is the default.
func networkConfiguration(_ network: rt_network?) throws(RealtimeError) -> NetworkConfiguration {
    guard let network else { return NetworkConfiguration() }
    return try NetworkHandle.borrow(network).configuration
}
