/// An object's members, in the order in which they came. Names are compared byte for byte (G1),
/// because `String` treats composed and decomposed letters as equal.
public struct JSONObject: Sendable, Equatable {
    public struct Member: Sendable {
        public let name: String
        public fileprivate(set) var value: JSONValue
    }

    public private(set) var members: [Member] = []
    /// The position of each name, once there are too many members to search. Each process seeds its
    /// hashes differently, so a peer cannot choose names that collide.
    private var positions: [ByteText: Int] = [:]
    private static let searchedCount = 16

    public init() {}

    public var count: Int { members.count }
    public var isEmpty: Bool { members.isEmpty }

    /// The member with this name. A new member is added at the end, and a new value keeps its
    /// member's position. Setting nil removes the member.
    public subscript(name: String) -> JSONValue? {
        get { position(of: name).map { members[$0].value } }
        set {
            switch (position(of: name), newValue) {
            case (let position?, let value?):
                members[position].value = value
            case (let position?, nil):
                members.remove(at: position)
                positions = [:]
                index(from: 0)
            case (nil, let value?):
                members.append(Member(name: name, value: value))
                index(from: positions.isEmpty ? 0 : members.count - 1)
            case (nil, nil):
                break
            }
        }
    }

    /// Whether both have the same members, in any order.
    public static func == (first: JSONObject, second: JSONObject) -> Bool {
        first.count == second.count
            && first.members.allSatisfy { second[$0.name] == $0.value }
    }

    private func position(of name: String) -> Int? {
        guard positions.isEmpty else { return positions[ByteText(name)] }
        return members.firstIndex { $0.name.hasSameBytes(as: name) }
    }

    private mutating func index(from first: Int) {
        guard members.count > JSONObject.searchedCount else { return }
        for position in first..<members.count {
            positions[ByteText(members[position].name)] = position
        }
    }
}
