package import Wire

/// The host and port that a connection for a URL leads to first: the server's, or a proxy's.
package struct ConnectTarget: Hashable, Sendable {
    /// A name, or an address without brackets.
    package let host: String
    package let port: UInt16
    package let isProxy: Bool
    /// The addresses, if the resolver need not be asked. An IPv6 address may have a zone.
    package let known: [String]?

    /// - Parameter proxyURL: the proxy that is used for it; nil for none.
    package init(of url: HTTPURL, by network: NetworkConfiguration, proxyURL: String?) {
        let zone: String?
        if let proxyURL {
            let address = ProxyURL.address(of: proxyURL)
            (host, port, isProxy) = (address.host, UInt16(clamping: address.port), true)
            zone = ProxyURL.zone(of: proxyURL)
        } else {
            (host, port, isProxy) = (url.host, url.port, false)
            zone = url.zone
        }
        known = ConnectTarget.known(host, port, zone, network.resolves)
    }

    private static func known(
        _ host: String, _ port: UInt16, _ zone: String?, _ resolves: [String]
    ) -> [String]? {
        // The last entry for a host counts.
        let key = "\(host):\(port):"
        let entry = resolves.last {
            $0.utf8.count > key.utf8.count && $0.prefix(key.count).equalsIgnoringASCIICase(key)
        }
        if let entry { return [String(entry.dropFirst(key.count))] }
        if IPAddress(host) != nil { return [zone.map { "\(host)%\($0)" } ?? host] }
        // Not looked up (RFC 6761 §6.3).
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        let suffix = ".localhost"
        let isLocal =
            name.equalsIgnoringASCIICase("localhost")
            || name.count > suffix.count
                && name.suffix(suffix.count).equalsIgnoringASCIICase(suffix)
        return isLocal ? ["::1", "127.0.0.1"] : nil
    }
}
