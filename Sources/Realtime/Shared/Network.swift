internal import Session
internal import Wire

/// Settings for making connections: TLS, proxies, addresses, sockets. One value can serve any
/// number of objects.
public struct Network: Sendable {
    /// The proxy through which connections are made.
    public enum Proxy: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
        /// From http_proxy (for ws), HTTPS_PROXY (for wss), ALL_PROXY and NO_PROXY.
        case environment
        /// No proxy, whatever the environment says.
        case none
        /// `http://` or `https://` (CONNECT, RFC 9110 §9.3.6), `socks5h://` (the proxy resolves
        /// names), `socks5://`, `socks4a://` or `socks4://`, with `user:password@` if the proxy
        /// requires it. The default port is 443 for https, 1080 for all others; nothing may follow
        /// host and port.
        case url(String)

        /// Without user and password.
        public var description: String {
            switch self {
            case .environment: "environment"
            case .none: "none"
            case .url(let url): "url(\(Shown.url(url)))"
            }
        }
        public var customMirror: Mirror { Shown.mirror(self) }
    }

    public enum TLSVersion: Sendable {
        case v1_2, v1_3
    }

    public enum IPVersion: Sendable {
        /// Both; whichever connects first is used (RFC 8305).
        case any
        case v4, v6
    }

    /// A certificate for servers that ask for one.
    public struct ClientCertificate: Sendable {
        /// A PEM file with the certificate, followed by its chain.
        public var certificateFile: String
        /// A PEM file with the private key; nil if it is in the same file.
        public var keyFile: String?
        /// The key's password. It is never logged.
        public var keyPassword: String? {
            get { hiddenKeyPassword.value }
            set { hiddenKeyPassword.value = newValue }
        }
        private var hiddenKeyPassword: Hidden<String?>

        public init(certificateFile: String, keyFile: String? = nil, keyPassword: String? = nil) {
            self.certificateFile = certificateFile
            self.keyFile = keyFile
            hiddenKeyPassword = Hidden(keyPassword)
        }
    }

    /// An address for a host and port, used instead of asking the resolver.
    public struct Resolve: Sendable {
        public var host: String
        public var port: Int
        /// IPv4 or IPv6, without brackets.
        public var address: String

        public init(host: String, port: Int, address: String) {
            self.host = host
            self.port = port
            self.address = address
        }
    }

    public var clientCertificate: ClientCertificate?
    /// The only public keys accepted; empty accepts any. Each is "sha256//" and the base64 of the
    /// SHA-256 of a key's SubjectPublicKeyInfo (RFC 7469 §2.4).
    public var pinnedPublicKeys: [String] = []
    public var proxy = Proxy.environment
    /// Hosts that are reached without a proxy, instead of NO_PROXY: names, domains, addresses and
    /// networks such as 10.0.0.0/8, separated by commas; "*" for all. A name also matches its
    /// subdomains. A name or an address may have a port, which then must be the URL's:
    /// "example.org:8080", "[::1]:8080". An entry that cannot match any host throws
    /// `.invalidArgument`.
    public var noProxy: String?
    public var resolves: [Resolve] = []

    // abigen: the options of NetworkConfiguration
    /// A PEM file of trusted certificates. They replace the system's certificates and those that
    /// the environment names by CURL_CA_BUNDLE, or else by SSL_CERT_FILE and SSL_CERT_DIR. If the
    /// file cannot be read, connections fail with `.tls`.
    public var caFile: String?
    /// A folder of trusted certificates, named by `openssl rehash`. They replace the system's
    /// certificates; with a CA file, both are trusted.
    public var caPath: String?
    /// The oldest TLS version that is accepted.
    public var minimumTLSVersion = TLSVersion.v1_2
    /// Accepts any certificate for any name, so anyone on the path can read and change everything.
    /// For tests only.
    public var insecureSkipVerification = false
    /// A Unix socket to connect to instead of the URL's host. The Host header and the certificate
    /// check still use that host. No proxy is used.
    public var unixSocket: String?
    /// Which IP versions are used to connect. Each attempt looks up the host's addresses again, and
    /// races them (RFC 8305): the versions alternate, and an address is tried 250 ms after the one
    /// before, or at once when one fails. The first that connects is used. At most 32 are tried.
    public var ipVersion = IPVersion.any
    /// The name of the network interface, or the local IP address, from which connections are made,
    /// also to a proxy: "eth1" or "192.0.2.7". If it does not exist, or has no address of the
    /// host's IP version, connecting fails with `.connect`, for a proxy with `.proxy`. A name needs
    /// Linux 5.7 or CAP_NET_RAW; otherwise an address of the interface is used, and the route
    /// decides about the interface.
    public var interface: String?
    /// Whether small writes are sent at once, instead of waiting for an acknowledgement
    /// (TCP_NODELAY).
    public var tcpNoDelay = true
    /// How long a connection may be idle before the kernel probes the peer, and the time between
    /// probes. Whole seconds, rounded down, at least one; the kernel closes the connection after
    /// its configured number of unanswered probes (9, tcp(7)). If this is not set, WebSockets are
    /// not probed, because they have pings. Connections of event sources, long polls and requests
    /// are probed after 20 s without traffic, then every 5 s, and fail after three unanswered
    /// probes (TCP_KEEPCNT), so a dead link is noticed within 35 s. A long interval amounts to no
    /// probes. nil means not set.
    public var tcpKeepAlive: Duration?
    /// The size of the kernel's receive buffer (SO_RCVBUF). If this is not set, the kernel adapts
    /// it to the path. A fixed 256 KiB keeps large messages in the processor's cache, but limits
    /// the throughput of long, fast paths. 0 means the kernel's choice.
    public var receiveBufferBytes = 0
    // abigen: end

    public init() {}

    func configuration() throws(RealtimeError) -> NetworkConfiguration {
        var target = NetworkConfiguration()
        try applyPlain(to: &target)
        if let certificate = clientCertificate {
            try target.setClientCertificate(
                certificate.certificateFile, keyFile: certificate.keyFile,
                keyPassword: certificate.keyPassword)
        }
        for pin in pinnedPublicKeys { try target.addPinnedPublicKey(pin) }
        switch proxy {
        case .environment: break
        case .none: try target.setProxy("")
        case .url(let url):
            guard !url.isEmpty else {
                throw RealtimeError(.invalidURL, "the URL of the proxy is empty; use .none")
            }
            try target.setProxy(url)
        }
        if let noProxy { try target.setNoProxy(noProxy) }
        for resolve in resolves {
            try target.addResolve(
                host: resolve.host, port: resolve.port, address: resolve.address)
        }
        return target
    }
}

extension Network {
    /// For the command-line tool: whether a text is that of a key or certificate, not the name of a
    /// file with it.
    @_spi(CommandLine) public static func isPEM(_ text: String) -> Bool { FileName.isPEM(text) }
}
