/// An object's members in the order in which they came. Names are compared byte for byte (G1):
/// `String`'s own comparison takes composed and decomposed letters for the same.
public struct JSONObject: Sendable, Equatable {
    public struct Member: Sendable {
        public let name: String
        public fileprivate(set) var value: JSONValue
    }

    public private(set) var members: [Member] = []
    /// Where each name is, once there are too many to look through. Its hashes are seeded for each
    /// process, so that a peer cannot choose names that meet.
    private var places: [Name: Int] = [:]
    private static let lookedThrough = 16

    public init() {}

    public var count: Int { members.count }
    public var isEmpty: Bool { members.isEmpty }

    /// The member of this name. A new one comes last, another value keeps the place; nil takes it
    /// away.
    public subscript(name: String) -> JSONValue? {
        get { place(of: name).map { members[$0].value } }
        set {
            switch (place(of: name), newValue) {
            case (let place?, let value?):
                members[place].value = value
            case (let place?, nil):
                members.remove(at: place)
                places = [:]
                index(from: 0)
            case (nil, let value?):
                members.append(Member(name: name, value: value))
                index(from: places.isEmpty ? 0 : members.count - 1)
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

    private func place(of name: String) -> Int? {
        guard places.isEmpty else { return places[Name(text: name)] }
        return members.firstIndex { $0.name.utf8.elementsEqual(name.utf8) }
    }

    private mutating func index(from first: Int) {
        guard members.count > JSONObject.lookedThrough else { return }
        for place in first..<members.count { places[Name(text: members[place].name)] = place }
    }

    private struct Name: Hashable {
        let text: String

        static func == (first: Name, second: Name) -> Bool {
            first.text.utf8.elementsEqual(second.text.utf8)
        }

        func hash(into hasher: inout Hasher) {
            var text = text
            text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        }
    }
}
