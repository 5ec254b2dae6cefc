import CShims
import Glibc
import Session
import Wire

/// A `NetworkConfiguration` applied to an easy handle: the options, and the memory that libcurl
/// needs until the handle is freed.
final class CurlNetwork {
    private var resolves: UnsafeMutablePointer<curl_slist>?
    private var share: UnsafeMutableRawPointer?

    private init() {}

    convenience init(
        _ network: NetworkConfiguration, on easy: UnsafeMutableRawPointer
    ) throws(RealtimeError) {
        self.init()
        setTLS(network, easy)
        setRoute(network, easy)
        setSocket(network, easy)
        try setResolves(network.resolves, easy)
    }

    /// Free this after the easy handle.
    deinit {
        curl_slist_free_all(resolves)
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

    private func setRoute(_ network: NetworkConfiguration, _ easy: UnsafeMutableRawPointer) {
        if let path = network.unixSocket {
            _ = shim_curl_set_string(easy, CURLOPT_UNIX_SOCKET_PATH, path)
        }
        let resolve =
            switch network.ipVersion {
            case .any: CURL_IPRESOLVE_WHATEVER
            case .v4: CURL_IPRESOLVE_V4
            case .v6: CURL_IPRESOLVE_V6
            }
        _ = shim_curl_set_long(easy, CURLOPT_IPRESOLVE, Int(resolve))
    }

    private func setSocket(_ network: NetworkConfiguration, _ easy: UnsafeMutableRawPointer) {
        _ = shim_curl_set_open_socket(easy, Int32(clamping: network.receiveBufferBytes), 0)
        _ = shim_curl_set_long(easy, CURLOPT_TCP_NODELAY, network.tcpNoDelay ? 1 : 0)
        guard network.tcpKeepAlive > .zero else { return }
        // Whole seconds, at least one.
        let seconds = max(1, Int(network.tcpKeepAlive.clampedNanoseconds / 1_000_000_000))
        _ = shim_curl_set_long(easy, CURLOPT_TCP_KEEPALIVE, 1)
        _ = shim_curl_set_long(easy, CURLOPT_TCP_KEEPIDLE, seconds)
        _ = shim_curl_set_long(easy, CURLOPT_TCP_KEEPINTVL, seconds)
    }

    /// libcurl stores such addresses in its DNS cache. This connection gets its own cache, so that
    /// other connections of the loop do not use them.
    private func setResolves(
        _ entries: [String], _ easy: UnsafeMutableRawPointer
    ) throws(RealtimeError) {
        guard !entries.isEmpty else { return }
        for entry in entries {
            guard let longer = curl_slist_append(resolves, entry) else {
                throw RealtimeError(.system, "libcurl could not store an address")
            }
            resolves = longer
        }
        guard let share = shim_curl_dns_share() else {
            throw RealtimeError(.system, "libcurl could not create a DNS cache")
        }
        self.share = share
        _ = shim_curl_set_pointer(easy, CURLOPT_SHARE, share)
        _ = shim_curl_set_pointer(easy, CURLOPT_RESOLVE, resolves)
    }
}
