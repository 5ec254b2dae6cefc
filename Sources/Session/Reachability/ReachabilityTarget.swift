package import Wire

/// The hosts that a connection to a URL may first lead to: it is worth an attempt when one of them
/// can be reached.
package enum ReachabilityTarget {
    /// - Parameter environment: a variable of the process's environment.
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
        // libcurl takes the last one given.
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
        // libcurl looks neither of them up (RFC 6761 §6.3).
        let suffix = ".localhost"
        let isLocal =
            text.equalsIgnoringASCIICase("localhost")
            || text.count > suffix.count
                && text.suffix(suffix.count).equalsIgnoringASCIICase(suffix)
        return isLocal ? .here : .name(text)
    }
}

extension Duration {
    /// How long one who waited for the network waits on when it is there again, so that not all of
    /// a machine's connections, or of a site's, come at once.
    /// - Parameter random: uniform in [0, 1).
    package static func onceOnline(random: Double) -> Duration {
        .nanoseconds(Int64(random * 1e9))
    }
}
