// The JSON part of the floor of Meteor's documents. It is compiled together with Sources/Wire, in
// the same way as the library.

private enum Kind {
    static let other = 0
    static let document = 1
    static let ready = 2
    static let broken = -1
}

private struct Floor: ~Copyable {
    var message = JSONDocument()
    var titles: UInt64 = 0
    var numbers: UInt64 = 0

    mutating func read(_ bytes: UnsafeRawBufferPointer) throws(RealtimeError) -> Int {
        var (titles, numbers) = (UInt64(0), UInt64(0))
        let kind = try message.read(bytes) { root throws(RealtimeError) in
            var (kind, collection, id, fields): (JSONNode?, JSONNode?, JSONNode?, JSONNode?)
            for member in root.members {
                member.name.withString { name in
                    switch name.count {
                    case 2 where name.isWord("id"): id = member.value
                    case 3 where name.isWord("msg"): kind = member.value
                    case 6 where name.isWord("fields"): fields = member.value
                    case 10 where name.isWord("collection"): collection = member.value
                    default: break
                    }
                }
            }
            guard let kind else { return Kind.other }
            guard let fields, collection != nil, id != nil else {
                return kind.withString { $0.isWord("ready") } == true ? Kind.ready : Kind.other
            }
            for member in fields.members {
                member.name.withString { name in
                    switch name.count {
                    case 1 where name.isWord("n"), 5 where name.isWord("score"):
                        numbers += UInt64(member.value.integer ?? 0)
                    case 5 where name.isWord("title"):
                        titles += UInt64(member.value.withString { $0.count } ?? 0)
                    default: break
                    }
                }
            }
            return Kind.document
        }
        self.titles += titles
        self.numbers += numbers
        return kind
    }
}

nonisolated(unsafe) private var floor = Floor()

@_cdecl("floor_read_ddp")
public func floorReadDDP(
    _ message: UnsafeRawPointer, _ length: Int, _ titles: UnsafeMutablePointer<UInt64>,
    _ numbers: UnsafeMutablePointer<UInt64>
) -> Int {
    do throws(RealtimeError) {
        let kind = try floor.read(UnsafeRawBufferPointer(start: message, count: length))
        titles.pointee = floor.titles
        numbers.pointee = floor.numbers
        return kind
    } catch {
        return Kind.broken
    }
}
