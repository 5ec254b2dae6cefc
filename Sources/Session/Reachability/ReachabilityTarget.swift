package import Wire

/// The hosts to which a connection for a URL may lead first. An attempt makes sense if one of them
/// is reachable.
package enum ReachabilityTarget {
    /// - Parameter environment: returns a variable of the process's environment.
    package static func hosts(
        of url: HTTPURL, by network: NetworkConfiguration,
        environment: (_ name: String) -> String?
    ) -> [NetworkView.Host] {
        if network.unixSocket != nil { return [.here] }
        guard let proxy = network.proxyURL(to: url, environment: environment) else {
            return [host(of: url, network)]
        }
        return [host(named: ProxyURL.address(of: proxy).host)]
    }

    private static func host(of url: HTTPURL, _ network: NetworkConfiguration) -> NetworkView.Host {
        // libcurl uses the last matching entry.
        let resolved = network.resolves.last {
            let key = "\(url.host):\(url.port):"
            return $0.utf8.count > key.utf8.count
                && $0.prefix(key.count).equalsIgnoringASCIICase(key)
        }
        guard let resolved else { return host(named: url.host) }
        return host(named: String(resolved.dropFirst("\(url.host):\(url.port):".count)))
    }

    /// - Parameter text: a name, or an address without brackets.
    private static func host(named text: String) -> NetworkView.Host {
        if let address = IPAddress(text) { return address.isLoopback ? .here : .address(address) }
        // libcurl does not look up either of them (RFC 6761 §6.3).
        let suffix = ".localhost"
        let isLocal =
            text.equalsIgnoringASCIICase("localhost")
            || text.count > suffix.count
                && text.suffix(suffix.count).equalsIgnoringASCIICase(suffix)
        return isLocal ? .here : .name(text)
    }
}

extension Duration {
    /// How long a connection still waits after the network has returned, so that not all
    /// connections of a machine, or of a site, start at once.
    /// - Parameter random: uniform in [0, 1).
    package static func onceOnline(random: Double) -> Duration {
        .nanoseconds(Int64(random * 1e9))
    }
}
