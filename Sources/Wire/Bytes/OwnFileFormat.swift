/// A kind of file that only the library writes. Its first line says which kind it is.
package struct OwnFileFormat: Equatable, Sendable {
    /// The first line of the file.
    package let firstLine: String
    /// The file's name in messages.
    package let name: String
    /// With what a file begins that may be replaced: the first line, of any version if the reader
    /// understands others or discards them.
    private let mark: String
    /// Whether the reader starts afresh if the file is damaged.
    private let discardsDamaged: Bool

    private init(
        firstLine: String, name: String, mark: String? = nil, discardsDamaged: Bool = false
    ) {
        self.firstLine = firstLine
        self.name = name
        self.mark = mark ?? firstLine + "\n"
        self.discardsDamaged = discardsDamaged
    }

    /// The last event ids of event sources.
    package static let eventIDs = OwnFileFormat(
        firstLine: "librealtime event ids 1", name: "id file")
    /// The login tokens of Meteor clients.
    package static let loginTokens = OwnFileFormat(
        firstLine: "librealtime login tokens 1", name: "token file")
    /// The documents of a Meteor client.
    package static let documents = OwnFileFormat(
        firstLine: "librealtime documents 1", name: "document file",
        mark: "librealtime documents ", discardsDamaged: true)

    /// Whether a file with these bytes may be replaced: it begins as such a file does, or is a part
    /// of that beginning, as an empty file is. If the reader discards damaged files, a beginning in
    /// which most bytes are right, or which a crash has left as zeros, counts too.
    package func isOurs(_ bytes: some Collection<UInt8>) -> Bool {
        let beginning = mark.utf8
        let head = bytes.prefix(beginning.count)
        let right = zip(head, beginning).count { $0 == $1 }
        if right == head.count { return true }
        guard discardsDamaged, head.count == beginning.count else { return false }
        return right * 8 >= beginning.count * 7 || head.allSatisfy { $0 == 0 }
    }
}
