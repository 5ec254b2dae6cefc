import CShims
import Glibc
import Session
import Wire

/// A `NetworkConfiguration` applied to an easy handle: the options, and the memory that libcurl
/// needs until the handle is freed.
final class CurlNetwork {
    private let configuration: NetworkConfiguration
    private var resolves: UnsafeMutablePointer<curl_slist>?
    private var connects: UnsafeMutablePointer<curl_slist>?
    private var share: UnsafeMutableRawPointer?

    private init(of configuration: NetworkConfiguration) { self.configuration = configuration }

    convenience init(
        _ network: NetworkConfiguration, on easy: UnsafeMutableRawPointer
    ) throws(RealtimeError) {
        self.init(of: network)
        setTLS(network, easy)
        if let path = network.unixSocket {
            _ = shim_curl_set_string(easy, CURLOPT_UNIX_SOCKET_PATH, path)
        }
        // `Dial` sets the other options of sockets.
        _ = shim_curl_set_long(easy, CURLOPT_TCP_NODELAY, network.tcpNoDelay ? 1 : 0)
        // For what a SOCKS proxy needs: each attempt must look up the name again.
        _ = shim_curl_set_long(easy, CURLOPT_DNS_CACHE_TIMEOUT, 0)
    }

    /// Free this after the easy handle.
    deinit {
        curl_slist_free_all(resolves)
        curl_slist_free_all(connects)
        if let share { curl_share_cleanup(share) }
    }

    /// Whether libcurl's built-in path of the CA file exists.
    private static let hasDefaultFile: Bool = {
        guard let path = shim_curl_default_ca_file() else { return false }
        return Glibc.access(path, R_OK) == 0
    }()

    private func setTLS(_ network: NetworkConfiguration, _ easy: UnsafeMutableRawPointer) {
        let trusted = CurlAuthorities(network)
        // A proxy that uses TLS is verified by the same authorities.
        if let caFile = trusted.file {
            _ = shim_curl_set_string(easy, CURLOPT_CAINFO, caFile)
            _ = shim_curl_set_string(easy, CURLOPT_PROXY_CAINFO, caFile)
            // Otherwise the system's folder would be trusted as well.
            _ = shim_curl_set_string(easy, CURLOPT_CAPATH, trusted.folder)
            _ = shim_curl_set_string(easy, CURLOPT_PROXY_CAPATH, trusted.folder)
        } else if let caPath = trusted.folder {
            _ = shim_curl_set_string(easy, CURLOPT_CAPATH, caPath)
            _ = shim_curl_set_string(easy, CURLOPT_PROXY_CAPATH, caPath)
            _ = shim_curl_set_string(easy, CURLOPT_CAINFO, nil)
            _ = shim_curl_set_string(easy, CURLOPT_PROXY_CAINFO, nil)
        } else if CurlNetwork.hasDefaultFile {
            // libcurl caches a file's certificates for all connections of a loop, but not a
            // folder's. The system's file has the same certificates as its folder.
            _ = shim_curl_set_string(easy, CURLOPT_CAPATH, nil)
        }
        if let certificate = network.clientCertificate {
            _ = shim_curl_set_string(easy, CURLOPT_SSLCERT, certificate.certificateFile)
            _ = shim_curl_set_string(
                easy, CURLOPT_SSLKEY, certificate.keyFile ?? certificate.certificateFile)
            _ = shim_curl_set_string(easy, CURLOPT_KEYPASSWD, certificate.keyPassword)
        }
        if !network.pinnedPublicKeys.isEmpty {
            _ = shim_curl_set_string(
                easy, CURLOPT_PINNEDPUBLICKEY, network.pinnedPublicKeys.joined(separator: ";"))
        }
        let oldest =
            switch network.minimumTLSVersion {
            case .v1_2: CURL_SSLVERSION_TLSv1_2
            case .v1_3: CURL_SSLVERSION_TLSv1_3
            }
        _ = shim_curl_set_long(easy, CURLOPT_SSLVERSION, oldest)
        _ = shim_curl_set_long(easy, CURLOPT_PROXY_SSLVERSION, oldest)
        if network.skipsVerification {
            _ = shim_curl_set_long(easy, CURLOPT_SSL_VERIFYPEER, 0)
            _ = shim_curl_set_long(easy, CURLOPT_SSL_VERIFYHOST, 0)
            _ = shim_curl_set_long(easy, CURLOPT_PROXY_SSL_VERIFYPEER, 0)
            _ = shim_curl_set_long(easy, CURLOPT_PROXY_SSL_VERIFYHOST, 0)
        }
    }

    /// Sets the route of the next connections. libcurl must neither look up nor connect to the
    /// host, because it gets a connected socket. So it gets an address that is not used (RFC 6666)
    /// instead of the host's.
    func set(_ route: CurlRoute, on easy: UnsafeMutableRawPointer) throws(RealtimeError) {
        // The proxy is already chosen, so that errors name the one that was used. "" keeps libcurl
        // from reading the environment.
        _ = shim_curl_set_string(easy, CURLOPT_PROXY, route.proxyURL ?? "")
        _ = shim_curl_set_string(easy, CURLOPT_NOPROXY, "")
        guard let target = route.dialTarget else { return }
        // libcurl uses only the addresses that it sends to a SOCKS proxy.
        let family =
            switch configuration.ipVersion {
            case .v4 where route.isSOCKS: CURL_IPRESOLVE_V4
            case .v6 where route.isSOCKS: CURL_IPRESOLVE_V6
            case .any, .v4, .v6: CURL_IPRESOLVE_WHATEVER
            }
        _ = shim_curl_set_long(easy, CURLOPT_IPRESOLVE, Int(family))
        let isDirect = route.proxyURL == nil
        let old = connects
        connects = nil
        if isDirect { try CurlNetwork.append("::[\(placeholder(for: target))]:", to: &connects) }
        _ = shim_curl_set_pointer(easy, CURLOPT_CONNECT_TO, connects)
        curl_slist_free_all(old)
        if !isDirect { try setResolves(target, route.isSOCKS, easy) }
    }

    /// libcurl uses a connection again only for the same address, so each host has its own, and so
    /// has each way to choose the host's real address.
    private func placeholder(for target: ConnectTarget) -> String {
        var hasher = Hasher()
        for byte in target.host.utf8 { hasher.combine(byte.asciiLowercased) }
        hasher.combine(target.port)
        hasher.combine(target.known)
        hasher.combine(configuration.ipVersion.rawValue)
        hasher.combine(configuration.interface)
        let hash = UInt64(bitPattern: Int64(hasher.finalize()))
        let groups = [48, 32, 16, 0].map {
            String(UInt16(truncatingIfNeeded: hash >> $0), radix: 16)
        }
        return "100::" + groups.joined(separator: ":")
    }

    /// Through a proxy, libcurl looks up the proxy's name, and the host's for SOCKS. It gets them
    /// from its cache of names, of which the handle has its own.
    private func setResolves(
        _ proxy: ConnectTarget, _ isSOCKS: Bool, _ easy: UnsafeMutableRawPointer
    ) throws(RealtimeError) {
        let old = resolves
        resolves = nil
        defer { curl_slist_free_all(old) }
        for entry in isSOCKS ? configuration.resolves : [] {
            try CurlNetwork.append(entry, to: &resolves)
        }
        let version = configuration.ipVersion
        if proxy.known?.first != proxy.host {
            let address = version == .v6 ? "100::1" : "192.0.2.1"
            try CurlNetwork.append("\(proxy.host):\(proxy.port):\(address)", to: &resolves)
        }
        if share == nil { share = shim_curl_dns_share() }
        guard let share else {
            throw RealtimeError(.system, "libcurl could not create a DNS cache")
        }
        _ = shim_curl_set_pointer(easy, CURLOPT_SHARE, share)
        _ = shim_curl_set_pointer(easy, CURLOPT_RESOLVE, resolves)
    }

    private static func append(
        _ text: String, to list: inout UnsafeMutablePointer<curl_slist>?
    ) throws(RealtimeError) {
        guard let longer = curl_slist_append(list, text) else {
            throw RealtimeError(.system, "libcurl could not store an address")
        }
        list = longer
    }
}

extension shim_curl_dial {
    /// Gives libcurl the socket for its next connection, which libcurl then owns.
    mutating func give(_ dialed: DialedSocket) {
        socket = dialed.descriptor
        is_complete = dialed.isComplete
    }
}
