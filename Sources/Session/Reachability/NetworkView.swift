/// The machine's links, addresses and routes, as far as they decide which hosts are reachable (R9).
package struct NetworkView: Equatable, Sendable {
    package struct Route: Hashable, Sendable {
        package var destination: IPAddress
        package var prefixLength: Int
        /// The links that it may use; empty if the kernel names none.
        package var links: [Int32]

        package init(destination: IPAddress, prefixLength: Int, links: [Int32]) {
            self.destination = destination
            self.prefixLength = prefixLength
            self.links = links
        }

        var isDefault: Bool { prefixLength == 0 }
        var isLocal: Bool { destination.isLinkLocal || destination.isMulticast }
    }

    /// The destination of a connection.
    package enum Host: Hashable, Sendable {
        /// The loopback interface or a Unix socket.
        case here
        case address(IPAddress)
        /// A name, whose address is not known.
        case name(String)
    }

    /// The most of each kind that is kept. A machine with more is a router: only its links decide.
    package static let limit = 4096
    /// The most next hops of a route that are checked.
    package static let linksPerRoute = 256

    private var links: Set<Int32> = []
    private var addresses: Set<IPAddress> = []
    private var routes: Set<Route> = []
    package private(set) var isCrowded = false

    package init() {}

    /// A link that is up and running, and not the loopback.
    package mutating func add(usableLink index: Int32) {
        if hasRoom(links.count) { links.insert(index) }
    }

    /// An address of this machine.
    package mutating func add(_ address: IPAddress) {
        if hasRoom(addresses.count) { addresses.insert(address) }
    }

    package mutating func add(_ route: Route) {
        if hasRoom(routes.count) { routes.insert(route) }
    }

    private mutating func hasRoom(_ count: Int) -> Bool {
        if count >= NetworkView.limit { isCrowded = true }
        return count < NetworkView.limit
    }

    /// Whether hosts that are known only by name count as reachable.
    package var isOnline: Bool { reaches(.name("")) }

    /// Whether a connection to this host may succeed. In doubt this is true: a wrong "true" costs a
    /// failed attempt, but a wrong "false" would prevent every connection.
    package func reaches(_ host: Host) -> Bool {
        switch host {
        case .here: return true
        case .address(let address) where address.isLoopback || addresses.contains(address):
            return true
        case .address(let address):
            return hasRoute {
                $0.isDefault || address.begins(with: $0.destination, length: $0.prefixLength)
            }
        // Without a default route, the host may be in a network that has a route. For a name in
        // .local (RFC 6762 §3), a link-local route is enough.
        case .name(let name):
            let isOfLink = name.lowercased().hasSuffix(".local")
            return hasRoute { !$0.isLocal || isOfLink && $0.destination.isLinkLocal }
        }
    }

    private func hasRoute(_ isMeant: (Route) -> Bool) -> Bool {
        if isCrowded { return !links.isEmpty }
        return routes.contains { isMeant($0) && isUsable($0) }
    }

    private func isUsable(_ route: Route) -> Bool {
        route.links.isEmpty ? !links.isEmpty : route.links.contains(where: links.contains)
    }
}
