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
        let target = ConnectTarget(
            of: url, by: network, proxyURL: network.proxyURL(to: url, environment: environment))
        let hosts = (target.known ?? [target.host]).map { host(named: $0) }
        return hosts.contains(.here) ? [.here] : hosts
    }

    /// - Parameter text: a name, or an address without brackets.
    private static func host(named text: String) -> NetworkView.Host {
        guard let address = IPAddress(String(text.prefix { $0 != "%" })) else { return .name(text) }
        return address.isLoopback ? .here : .address(address)
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
