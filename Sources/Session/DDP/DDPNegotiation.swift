/// Which version of the protocol is offered.
struct DDPNegotiation: Sendable {
    let supported: [String]
    /// What the next `connect` says.
    private(set) var version: String
    /// Versions that the server has refused since it last accepted one.
    private var refused: [String] = []

    init(_ versions: [String]) {
        supported = versions.isEmpty ? ["1"] : versions
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
