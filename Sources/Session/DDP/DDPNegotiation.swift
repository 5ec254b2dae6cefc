/// Which version of the protocol is offered.
struct DDPNegotiation: Sendable {
    /// The versions that there are, the newest first.
    static let known = ["1", "pre2", "pre1"]

    let supported: [String]
    /// What the next `connect` says.
    private(set) var version: String
    /// Versions that the server has refused since it last accepted one.
    private var refused: [String] = []

    /// - Parameter versions: empty for all.
    init(_ versions: [String]) {
        supported = versions.isEmpty ? DDPNegotiation.known : versions
        version = supported[0]
    }

    mutating func accepted() { refused = [] }

    /// The server refuses the version, and wants another one.
    /// - Returns: whether to connect again with that: it is supported, and was not refused.
    mutating func refused(wants wanted: String) -> Bool {
        refused.append(version)
        guard supported.contains(wanted), !refused.contains(wanted) else { return false }
        version = wanted
        return true
    }
}
