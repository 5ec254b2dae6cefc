import CShims

/// What a Meteor client keeps for the next run: the documents that the server has sent.
package struct DDPKeptDocuments: Sendable {
    package struct Collection: Sendable {
        package let name: String
        /// Without their ids among the fields.
        package let documents: [(id: DocumentID, fields: EJSONObject)]

        package init(name: String, documents: [(id: DocumentID, fields: EJSONObject)]) {
            self.name = name
            self.documents = documents
        }
    }

    /// The user for whom the server has sent them; nil for nobody.
    package let userID: String?
    /// The subscriptions that were ready: arrays of a name and its parameters.
    package let subscriptions: [EJSON]
    package let collections: [Collection]

    package init(userID: String?, subscriptions: [EJSON], collections: [Collection]) {
        self.userID = userID
        self.subscriptions = subscriptions
        self.collections = collections
    }
}

// The file: the format's first line, the SHA-256 of what follows, an EJSON object that describes
// the rest, and the documents. Each collection is a line with its name as a JSON string, and a line
// for each document, an EJSON object.
extension DDPKeptDocuments {
    /// The largest file, in bytes.
    package static let limit = 1 << 30
    private static let digestName = "sha256 "
    private static let lineFeed = UInt8(ascii: "\n")

    /// The content of a file.
    /// - Parameter server: the server that has sent the documents.
    /// - Throws: `.tooLarge`; `.system` if libcrypto fails.
    package func bytes(server: String) throws(RealtimeError) -> [UInt8] {
        var content: [UInt8] = []
        var head = EJSONObject()
        head["server"] = .string(server)
        head["user"] = userID.map { .string($0) } ?? .null
        head["subscriptions"] = .array(subscriptions)
        EJSON.object(head).write(to: &content)
        content.append(DDPKeptDocuments.lineFeed)
        for collection in collections {
            EJSON.string(collection.name).write(to: &content)
            content.append(DDPKeptDocuments.lineFeed)
            for (id, fields) in collection.documents {
                var document = EJSONObject()
                document.reserveCapacity(fields.count + 1)
                document.append("_id", id.value ?? .null)
                for field in fields.fields { document.append(field.name, field.value) }
                EJSON.object(document).write(to: &content)
                content.append(DDPKeptDocuments.lineFeed)
            }
            guard content.count < DDPKeptDocuments.limit else {
                throw RealtimeError(
                    .tooLarge, "the documents take more than \(DDPKeptDocuments.limit >> 20) MiB")
            }
        }
        let first = OwnFileFormat.documents.firstLine + "\n" + DDPKeptDocuments.digestName
        return Array(first.utf8) + Array(try DDPKeptDocuments.digest(content[...]).utf8)
            + [DDPKeptDocuments.lineFeed] + content
    }

    /// - Throws: `.store` for a file that is damaged, of another format, or of another server. The
    ///   message continues a sentence about the file.
    package init(parsing bytes: [UInt8], server: String) throws(RealtimeError) {
        guard bytes.count <= DDPKeptDocuments.limit else {
            throw DDPKeptDocuments.fault("has more than \(DDPKeptDocuments.limit) bytes")
        }
        var lines = Lines(rest: bytes[...])
        guard let first = lines.next(), first.elementsEqual(OwnFileFormat.documents.firstLine.utf8)
        else { throw DDPKeptDocuments.fault("is of another version, or damaged") }
        guard let digest = lines.next(),
            try digest.elementsEqual(
                (DDPKeptDocuments.digestName + DDPKeptDocuments.digest(lines.rest)).utf8)
        else { throw DDPKeptDocuments.fault("is damaged: its checksum is wrong") }
        var reader = Reader()
        guard let line = lines.next(), case .object(let head)? = reader.read(line),
            case .string(let address)? = head["server"],
            case .array(let subscriptions)? = head["subscriptions"]
        else { throw DDPKeptDocuments.fault("is damaged in line 3") }
        guard address.utf8.elementsEqual(server.utf8) else {
            throw DDPKeptDocuments.fault("has documents of another server, \(address.quoted())")
        }
        self.subscriptions = subscriptions
        if case .string(let id)? = head["user"] { userID = id } else { userID = nil }
        collections = try DDPKeptDocuments.collections(&lines, &reader)
    }

    private static func collections(
        _ lines: inout Lines, _ reader: inout Reader
    ) throws(RealtimeError) -> [Collection] {
        var collections: [Collection] = []
        var name: String?
        var documents: [(id: DocumentID, fields: EJSONObject)] = []
        var names = SharedFieldNames()
        func end() {
            if let name { collections.append(Collection(name: name, documents: documents)) }
            documents = []
        }
        while let line = lines.next() {
            switch reader.read(line) {
            case .string(let next)?:
                end()
                name = next
            case .object(var fields)?:
                guard name != nil, let value = fields["_id"], let id = DocumentID(value) else {
                    throw fault("is damaged in line \(lines.number)")
                }
                fields["_id"] = nil
                fields.shareNames(with: &names)
                documents.append((id, fields))
            default: throw fault("is damaged in line \(lines.number)")
            }
        }
        end()
        return collections
    }

    private static func fault(_ fault: String) -> RealtimeError { RealtimeError(.store, fault) }

    private static func digest(_ bytes: ArraySlice<UInt8>) throws(RealtimeError) -> String {
        var isMade = false
        let digest = [UInt8](unsafeUninitializedCapacity: 32) { digest, count in
            isMade = bytes.withUnsafeBufferPointer {
                shim_sha256($0.baseAddress, $0.count, nil, 0, digest.baseAddress)
            }
            count = isMade ? 32 : 0
        }
        guard isMade else {
            throw RealtimeError(.system, "libcrypto could not make the checksum of documents")
        }
        return hexText(digest)
    }

    private struct Lines {
        var rest: ArraySlice<UInt8>
        /// Of the last line, from 1.
        var number = 0

        mutating func next() -> ArraySlice<UInt8>? {
            guard let end = rest.firstIndex(of: lineFeed) else { return nil }
            defer { rest = rest[(end + 1)...] }
            number += 1
            return rest[..<end]
        }
    }

    /// Documents share the names of their fields.
    private struct Reader: ~Copyable {
        private var document = JSONDocument()
        private let names = KnownFieldNames()

        mutating func read(_ line: ArraySlice<UInt8>) -> EJSON? {
            let names = names
            return line.withUnsafeBytes { line in
                try? document.read(line, maximumDepth: 512) { root throws(RealtimeError) in
                    try EJSON(root, names)
                }
            }
        }
    }
}
