package import Wire

/// How connections are made: what TLS trusts and shows, which proxy is taken, which address is
/// connected to, how the socket is set. One value serves any number of objects; the C ABI's
/// `rt_network_set_*`, with the same defaults.
package struct NetworkConfiguration: Sendable, Equatable {
    package enum Proxy: Sendable, Equatable {
        /// By http_proxy, HTTPS_PROXY and ALL_PROXY.
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

    /// A PEM file, and the file of its key when that is another one.
    package struct ClientCertificate: Sendable, Equatable {
        package var certificateFile: String
        package var keyFile: String?
        package var keyPassword: String?
    }

    // TLS
    package private(set) var caFile: String?
    package private(set) var caPath: String?
    package private(set) var clientCertificate: ClientCertificate?
    /// `sha256//` and the base64 of a digest each.
    package private(set) var pinnedPublicKeys: [String] = []
    package var minimumTLSVersion = TLSVersion.v1_2
    package var verifiesCertificates = true

    // The way
    package private(set) var proxy = Proxy.environment
    /// Nil for the environment's.
    package private(set) var noProxy: NoProxyList?
    package private(set) var unixSocket: String?
    /// `host:port:address` each, in libcurl's form.
    package private(set) var resolves: [String] = []
    package var ipVersion = IPVersion.any

    // The socket
    package var tcpNoDelay = true
    /// Idle time before the kernel probes the peer, and between probes. Zero: a WebSocket is not
    /// probed, other connections as `CurlHandle` says.
    package private(set) var tcpKeepAlive = Duration.zero
    /// SO_RCVBUF; 0 leaves it to the kernel.
    package private(set) var receiveBufferBytes = 0

    package init() {}

    package mutating func setCAFile(_ path: String) throws(RealtimeError) {
        caFile = try checked(path, "the path of the CA file")
    }

    package mutating func setCAPath(_ path: String) throws(RealtimeError) {
        caPath = try checked(path, "the path of the CA folder")
    }

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

    /// - Parameter url: `http`, `https`, `socks4`, `socks4a`, `socks5` or `socks5h`, with
    ///   user and password where they are needed; "" for no proxy, whatever the environment says.
    package mutating func setProxy(_ url: String) throws(RealtimeError) {
        guard !url.isEmpty else { return proxy = .none }
        try ProxyURL.check(url)
        proxy = .url(url)
    }

    /// - Parameter hosts: names, domains, addresses and networks that are reached without a proxy,
    ///   separated by commas; "*" for all.
    package mutating func setNoProxy(_ hosts: String) throws(RealtimeError) {
        noProxy = try NoProxyList(parsing: hosts)
    }

    /// The URL of the proxy that leads to `url`, as it was given; nil when none does.
    /// - Parameter environment: a variable of the process's environment.
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
            // Never HTTP_PROXY: in a CGI program it is a header of the request's.
            case .environment where url.isSecure:
                variable("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
            case .environment: variable("http_proxy", "all_proxy", "ALL_PROXY")
            }
        guard let chosen else { return nil }
        let exceptions =
            noProxy
            ?? variable("no_proxy", "NO_PROXY").map { NoProxyList(ofEnvironment: $0) }
        return exceptions?.contains(url.host) ?? false ? nil : chosen
    }

    package mutating func setUnixSocket(_ path: String) throws(RealtimeError) {
        let path = try checked(path, "the path of the Unix socket")
        // sun_path has 108 bytes, a NUL among them.
        guard path.utf8.count < 108 else {
            throw RealtimeError(
                .invalidArgument,
                "the path of the Unix socket has \(path.utf8.count) bytes, 107 are the most")
        }
        unixSocket = path
    }

    /// Makes a host's port lead to an address, without asking the resolver.
    /// - Parameter address: IPv4 or IPv6, without brackets.
    package mutating func addResolve(
        host: String, port: Int, address: String
    ) throws(RealtimeError) {
        guard !host.isEmpty, host.utf8.allSatisfy({ isHostByte($0) }) else {
            throw RealtimeError(
                .invalidArgument, "the host \(HTTPURL.redacted(host)) to resolve is not a host name"
            )
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
        resolves.append("\(host):\(port):\(address)")
    }

    package mutating func setTCPKeepAlive(_ interval: Duration) throws(RealtimeError) {
        // What the kernel takes (TCP_KEEPIDLE); libcurl would keep quiet about its refusal.
        let longest = Duration.seconds(32_767)
        guard interval >= .zero, interval <= longest else {
            throw RealtimeError(
                .invalidArgument,
                "the TCP keep-alive is \(interval.readable), \(longest.readable) is the most")
        }
        tcpKeepAlive = interval
    }

    package mutating func setReceiveBufferBytes(_ bytes: Int) throws(RealtimeError) {
        guard bytes >= 0, bytes <= Int(Int32.max) else {
            throw RealtimeError(
                .invalidArgument,
                "the receive buffer is to have \(bytes) bytes, 0 to \(Int32.max) is expected")
        }
        receiveBufferBytes = bytes
    }
}

private func checked(_ path: String, _ what: String) throws(RealtimeError) -> String {
    guard !path.isEmpty else { throw RealtimeError(.invalidArgument, "\(what) is empty") }
    try checkNoNUL(path, what)
    return path
}

/// libcurl would take what is before it.
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

/// What stands in a name; ":" and "[" would change the meaning of libcurl's form.
func isHostByte(_ byte: UInt8) -> Bool {
    isTokenByte(byte) && byte != UInt8(ascii: "*")
}

private func isAddressByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: ":"), UInt8(ascii: "."):
        true
    default: false
    }
}
