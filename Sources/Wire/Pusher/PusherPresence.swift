/// A user on a presence channel.
package struct PusherMember: Sendable, Equatable {
    package let id: String
    /// The member's `user_info` as JSON text; nil if there is none.
    package let info: [UInt8]?

    package init(id: String, info: [UInt8]?) {
        self.id = id
        self.info = info
    }

    /// The data of `member_added` and `member_removed`.
    /// - Throws: `.protocolViolation` if the user id is missing.
    package init(_ data: PusherData) throws(RealtimeError) {
        self = try data.read { root throws(RealtimeError) in
            guard let id = root.member("user_id")?.idText else {
                throw RealtimeError(.protocolViolation, "a presence message has no user_id")
            }
            return PusherMember(id: id, info: PusherMember.info(root.member("user_info")))
        }
    }

    fileprivate var byteCount: Int { id.utf8.count + (info?.count ?? 0) }

    fileprivate static func info(_ node: JSONNode?) -> [UInt8]? {
        guard let node, node.kind != .null else { return nil }
        return node.span.compact
    }
}

/// The members of a presence channel by id, in the order in which they came
/// (docs/pusher-rules.md, U9).
package struct PusherPresenceTable: Sendable {
    private var table = ByteTable<PusherMember>()
    /// The size of all ids and infos.
    private var bytes = 0

    /// How many members are kept, and how many bytes of their ids and infos. Further ones are
    /// ignored.
    package static let memberLimit = 10_000
    package static let bytesLimit = 16 << 20

    package init() {}

    /// The data of `subscription_succeeded`: the members of `hash`, then those that are only in
    /// `ids`. Without presence data the table is empty. A server in PHP sends a list instead of an
    /// object if its keys are 0, 1 and so on, in this order, which need not be that of `ids`.
    /// - Throws: `.protocolViolation` if the data is not JSON; `.tooLarge`.
    package init(_ data: PusherData) throws(RealtimeError) {
        guard data.kind != .none else { return }
        self = try data.read { root in
            var table = PusherPresenceTable()
            guard let presence = root.member("presence") else { return table }
            let ids = presence.member("ids")?.idTexts ?? []
            if let hash = presence.member("hash") {
                for member in hash.members where !table.isFull {
                    guard let id = member.name.idText else { continue }
                    table.insert(PusherMember(id: id, info: PusherMember.info(member.value)))
                }
                let list = Array(hash.elements)
                for (id, info) in zip(PusherPresenceTable.keys(list.count, ids), list)
                where !table.isFull {
                    table.insert(PusherMember(id: id, info: PusherMember.info(info)))
                }
            }
            for id in ids where !table.isFull && table[id] == nil {
                table.insert(PusherMember(id: id, info: nil))
            }
            return table
        }
    }

    private var isFull: Bool { count >= PusherPresenceTable.memberLimit }

    /// The ids of a list's members: its keys, unless `ids` has as many others.
    private static func keys(_ count: Int, _ ids: [String]) -> [String] {
        let keys = (0..<count).map { String($0) }
        guard ids.count == count else { return keys }
        var known = ByteTable<Bool>()
        for id in ids { known[id] = true }
        return keys.allSatisfy { known[$0] != nil } ? keys : ids
    }

    package var count: Int { table.count }
    package var members: [PusherMember] { table.values }

    package subscript(id: String) -> PusherMember? { table[id] }

    /// Adds a member, or replaces the info of one that is there.
    /// - Returns: whether there was room for it.
    @discardableResult
    package mutating func insert(_ member: PusherMember) -> Bool {
        let old = table[member.id]
        let size = bytes + member.byteCount - (old?.byteCount ?? 0)
        guard old != nil || !isFull, size <= PusherPresenceTable.bytesLimit else { return false }
        bytes = size
        table[member.id] = member
        return true
    }

    /// - Returns: the member that was removed; nil if the id is unknown.
    package mutating func remove(_ id: String) -> PusherMember? {
        let member = table[id]
        table[id] = nil
        bytes -= member?.byteCount ?? 0
        return member
    }

    package mutating func removeAll() { self = PusherPresenceTable() }
}
