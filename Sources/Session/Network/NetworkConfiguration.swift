package import Wire

/// The options of connections: TLS trust and client certificate, proxy, addresses, socket options.
/// One value can serve any number of objects.
/// - Object: network, Network, value
package struct NetworkConfiguration: Sendable, Equatable {
    package enum Proxy: Sendable, Equatable {
        /// The one in http_proxy, HTTPS_PROXY or ALL_PROXY.
        case environment
        case none
        case url(String)
    }

    package enum TLSVersion: Int32, Sendable {
        case v1_2 = 12
        case v1_3 = 13
    }

    package enum IPVersion: Int32, Sendable {
        case any = 0
        case v4 = 4
        case v6 = 6
    }

    /// A PEM file, and the file of its key if that is a different one.
    package struct ClientCertificate: Sendable, Equatable {
        package var certificateFile: String
        package var keyFile: String?
        package var keyPassword: String?
    }

    // TLS
    /// A PEM file of trusted certificates. They replace the system's certificates and those that
    /// the environment names by CURL_CA_BUNDLE, or else by SSL_CERT_FILE and SSL_CERT_DIR. If the
    /// file cannot be read, connections fail with RT_ERROR_TLS.
    /// - Option: ca_file, path
    package var caFile: String?
    /// A folder of trusted certificates, named by `openssl rehash`. They replace the system's
    /// certificates; with a CA file, both are trusted.
    /// - Option: ca_path, path
    package var caPath: String?
    package private(set) var clientCertificate: ClientCertificate?
    /// Each is `sha256//` followed by a digest in base64.
    package private(set) var pinnedPublicKeys: [String] = []
    /// The oldest TLS version that is accepted.
    /// - Option: min_tls_version, choice rt_tls_version RT_TLS TLSVersion v1_2="1.2" v1_3="1.3",
    ///   swift minimumTLSVersion
    package var minimumTLSVersion = TLSVersion.v1_2
    /// Accepts any certificate for any name, so anyone on the path can read and change everything.
    /// For tests only.
    /// - Option: insecure_skip_verification, flag
    package var skipsVerification = false

    // The route
    package private(set) var proxy = Proxy.environment
    /// nil to use the environment's list.
    package private(set) var noProxy: NoProxyList?
    /// A Unix socket to connect to instead of the URL's host. The Host header and the certificate
    /// check still use that host. No proxy is used.
    /// - Option: unix_socket, path 0...107
    package var unixSocket: String?
    /// `host:port:address` each, in libcurl's form.
    package private(set) var resolves: [String] = []
    /// Which IP versions are used to connect. Each attempt looks up the host's addresses again, and
    /// races them (RFC 8305): the versions alternate, and an address is tried 250 ms after the one
    /// before, or at once when one fails. The first that connects is used. At most 32 are tried.
    /// - Option: ip_version, choice rt_ip_version RT_IP IPVersion any=None v4=4 v6=6
    package var ipVersion = IPVersion.any

    /// The name of the network interface, or the local IP address, from which connections are made,
    /// also to a proxy: "eth1" or "192.0.2.7". If it does not exist, or has no address of the
    /// host's IP version, connecting fails with RT_ERROR_CONNECT, for a proxy with RT_ERROR_PROXY.
    /// A name needs Linux 5.7 or CAP_NET_RAW; otherwise an address of the interface is used, and
    /// the route decides about the interface.
    /// - Option: interface, text
    package var interface: String?

    // The socket
    /// Whether small writes are sent at once, instead of waiting for an acknowledgement
    /// (TCP_NODELAY).
    /// - Option: tcp_no_delay, flag
    package var tcpNoDelay = true
    // The limit is the kernel's (TCP_KEEPIDLE). libcurl would not report that the kernel rejects
    // more.

    /// How long a connection may be idle before the kernel probes the peer, and the time between
    /// probes. Whole seconds, rounded down, at least one; the kernel closes the connection after
    /// its configured number of unanswered probes (9, tcp(7)). If this is not set, WebSockets are
    /// not probed, because they have pings. Connections of event sources, long polls and requests
    /// are probed after 20 s without traffic, then every 5 s, and fail after three unanswered
    /// probes (TCP_KEEPCNT), so a dead link is noticed within 35 s. A long interval amounts to no
    /// probes.
    /// - Option: tcp_keep_alive, limit 0...32_767_000, zero means not set
    package var tcpKeepAlive = Duration.zero
    /// The size of the kernel's receive buffer (SO_RCVBUF). If this is not set, the kernel adapts
    /// it to the path. A fixed 256 KiB keeps large messages in the processor's cache, but limits
    /// the throughput of long, fast paths.
    /// - Option: receive_buffer_bytes, bytes 0...2_147_483_647, zero means the kernel's choice,
    ///   python receive_buffer
    package var receiveBufferBytes = 0

    package init() {}

    package mutating func setClientCertificate(
        _ certificateFile: String, keyFile: String?, keyPassword: String?
    ) throws(RealtimeError) {
        let certificateFile = try checked(certificateFile, "the path of the client certificate")
        if let keyFile { _ = try checked(keyFile, "the path of the client key") }
        if let keyPassword { try checkNoNUL(keyPassword, "the password of the client key") }
        clientCertificate = ClientCertificate(
            certificateFile: certificateFile, keyFile: keyFile, keyPassword: keyPassword)
    }

    /// - Parameter pin: `sha256//` and the base64 of the SHA-256 of the key's
    ///   SubjectPublicKeyInfo (RFC 7469 §2.4), as libcurl writes it.
    package mutating func addPinnedPublicKey(_ pin: String) throws(RealtimeError) {
        let prefix = "sha256//"
        let digits = pin.utf8.dropFirst(prefix.utf8.count)
        // 32 bytes are 43 digits and a padding sign.
        guard pin.hasPrefix(prefix), digits.count == 44, digits.last == UInt8(ascii: "="),
            digits.dropLast().allSatisfy(isBase64Digit)
        else {
            throw RealtimeError(
                .invalidArgument,
                "the public key pin \(pin.quoted()) is not \"sha256//\" and 44 characters of base64"
            )
        }
        pinnedPublicKeys.append(pin)
    }

    /// - Parameter url: `http`, `https`, `socks4`, `socks4a`, `socks5` or `socks5h`, with user and
    ///   password if needed; "" for no proxy, even if the environment sets one.
    package mutating func setProxy(_ url: String) throws(RealtimeError) {
        guard !url.isEmpty else { return proxy = .none }
        try ProxyURL.check(url)
        proxy = .url(url)
    }

    /// - Parameter hosts: names, domains, addresses and networks to which no proxy is used,
    ///   separated by commas; "*" for all. All but networks may have a port, as in "host:8080".
    package mutating func setNoProxy(_ hosts: String) throws(RealtimeError) {
        noProxy = try NoProxyList(parsing: hosts)
    }

    /// The URL of the proxy for `url`, as it was set; nil if no proxy is used.
    /// - Parameter environment: returns a variable of the process's environment.
    package func proxyURL(
        to url: HTTPURL, environment: (_ name: String) -> String?
    ) -> String? {
        func variable(_ names: String...) -> String? {
            names.lazy.compactMap(environment).first { !$0.isEmpty }
        }
        guard unixSocket == nil else { return nil }
        let chosen: String? =
            switch proxy {
            case .none: nil
            case .url(let text): text
            // Never HTTP_PROXY: in a CGI program it contains a header of the request.
            case .environment where url.isSecure:
                variable("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
            case .environment: variable("http_proxy", "all_proxy", "ALL_PROXY")
            }
        guard let chosen else { return nil }
        let exceptions =
            noProxy
            ?? variable("no_proxy", "NO_PROXY").map { NoProxyList(ofEnvironment: $0) }
        return exceptions?.contains(url.host, port: url.port) ?? false ? nil : chosen
    }

    /// Maps a host and port to an address, bypassing the resolver. An international name means the
    /// same as its xn-- form.
    /// - Parameter address: IPv4 or IPv6, without brackets.
    package mutating func addResolve(
        host: String, port: Int, address: String
    ) throws(RealtimeError) {
        let name: String
        do throws(HostName.Fault) {
            guard let ascii = try hostName(host) else { throw .forbidden }
            name = ascii
        } catch {
            let fault = error == .needsLibrary ? HostName.needsLibrary : "which is not a host name"
            // What libcurl takes for every host is not a secret.
            let shown = host == "*" ? host.quoted() : HTTPURL.redacted(host)
            throw RealtimeError(.invalidArgument, "the host to resolve is \(shown), \(fault)")
        }
        guard (1...65535).contains(port) else {
            throw RealtimeError(
                .invalidArgument, "the port to resolve is \(port), 1 to 65535 is expected")
        }
        guard !address.isEmpty, address.utf8.allSatisfy(isAddressByte) else {
            throw RealtimeError(
                .invalidArgument,
                "the address \(HTTPURL.redacted(address)) is neither IPv4 nor IPv6")
        }
        resolves.append("\(name):\(port):\(address)")
    }
}

private func checked(_ path: String, _ what: String) throws(RealtimeError) -> String {
    guard !path.isEmpty else { throw RealtimeError(.invalidArgument, "\(what) is empty") }
    try checkNoNUL(path, what)
    try FileName.check(path, what)
    return path
}

/// libcurl would use only the text before the NUL.
private func checkNoNUL(_ text: String, _ what: String) throws(RealtimeError) {
    guard !text.utf8.contains(0) else {
        throw RealtimeError(.invalidArgument, "\(what) has a NUL character")
    }
}

private func isBase64Digit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
        true
    default: false
    }
}

private func isAddressByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: ":"), UInt8(ascii: "."):
        true
    default: false
    }
}
