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
        let exceptions = network.noProxy ?? environment("no_proxy") ?? environment("NO_PROXY")
        guard let proxy = proxy(of: url, network, environment) else {
            return [host(of: url, network)]
        }
        // Whether the list names the host is libcurl's to say; in doubt either way will do.
        let mayGoDirect = exceptions.map { !$0.isEmpty } ?? false
        return [host(named: proxyHost(proxy))] + (mayGoDirect ? [host(of: url, network)] : [])
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

    /// The proxy that leads there, in libcurl's order of the environment's variables.
    private static func proxy(
        of url: HTTPURL, _ network: NetworkConfiguration, _ environment: (String) -> String?
    ) -> String? {
        switch network.proxy {
        case .none: return nil
        case .url(let text): return text
        case .environment:
            // Never HTTP_PROXY: in a CGI program it is a header of the request's.
            let names = url.isSecure ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]
            return (names + ["all_proxy", "ALL_PROXY"]).lazy.compactMap(environment).first {
                !$0.isEmpty
            }
        }
    }

    /// The host of a proxy's URL, which may lack its scheme.
    private static func proxyHost(_ text: String) -> String {
        var rest = Substring(text)
        if let mark = rest.firstIndex(of: ":"), rest[mark...].hasPrefix("://") {
            rest = rest[rest.index(mark, offsetBy: 3)...]
        }
        rest = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        if let at = rest.lastIndex(of: "@") { rest = rest[rest.index(after: at)...] }
        if rest.hasPrefix("[") { return String(rest.dropFirst().prefix { $0 != "]" && $0 != "%" }) }
        return String(rest.prefix { $0 != ":" })
    }
}

extension Duration {
    /// How long one who waited for the network waits on when it is there again, so that not all of
    /// a machine's connections, or of a site's, come at once.
    /// - Parameter random: uniform in [0, 1).
    package static func onceOnline(random: Double) -> Duration {
        .milliseconds(Int64(random * 1000))
    }
}
