/// Reads the messages of the server. Storage is reused from message to message.
package struct DDPReader: ~Copyable {
    private var document = JSONDocument()

    package init() {}

    /// - Parameter text: a message, in UTF-8.
    package mutating func read(_ text: UnsafeRawBufferPointer) -> DDPFrame {
        do throws(RealtimeError) {
            return try document.read(text) { root throws(RealtimeError) in
                DDPReader.frame(root)
            }
        } catch {
            return .ignored(reason: error.message, isMessage: false)
        }
    }

    private static func frame(_ root: JSONNode) -> DDPFrame {
        guard let name = root.member("msg"), name.kind == .string else {
            return .ignored(reason: "not a message: it has no msg", isMessage: false)
        }
        do throws(RealtimeError) {
            if let message = try name.withWord({ word throws(RealtimeError) in
                try message(word, root)
            }) {
                return .message(message)
            }
            return .ignored(
                reason: "unknown message \(name.string?.prefix(40) ?? "")", isMessage: true)
        } catch {
            return .ignored(reason: error.message, isMessage: true)
        }
    }

    private static func message(
        _ word: UnsafeRawBufferPointer, _ root: JSONNode
    ) throws(RealtimeError) -> DDPMessage? {
        if let change = try change(word, root) {
            let text = try root.text("id")
            guard let id = DocumentID(wire: text) else { throw missing("a document's id") }
            return .document(
                DDPDocumentMessage(
                    collection: try root.text("collection"), id: id, change: change))
        }
        if word.isWord("ready") { return .ready(try root.texts("subs")) }
        if word.isWord("updated") { return .updated(try root.texts("methods")) }
        if word.isWord("result") { return .result(id: try root.text("id"), try result(root)) }
        if word.isWord("nosub") {
            return .nosub(id: try root.text("id"), root.member("error").map { DDPError($0) })
        }
        if word.isWord("ping") { return .ping(id: root.member("id")?.span.compact) }
        if word.isWord("pong") { return .pong }
        if word.isWord("connected") { return .connected(session: root.member("session")?.string) }
        if word.isWord("failed") { return .failed(version: try root.text("version")) }
        if word.isWord("error") {
            return .error(
                reason: root.member("reason")?.string ?? "",
                offending: root.member("offendingMessage")?.span.compact)
        }
        return nil
    }

    /// - Returns: nil if the message does not change a document.
    private static func change(
        _ word: UnsafeRawBufferPointer, _ root: JSONNode
    ) throws(RealtimeError) -> DDPDocumentMessage.Change? {
        if word.isWord("added") { return .added(try root.fields()) }
        if word.isWord("changed") {
            return .changed(try root.fields(), cleared: try root.texts("cleared", isOptional: true))
        }
        if word.isWord("removed") { return .removed }
        if word.isWord("addedBefore") {
            return .addedBefore(try root.fields(), before: try root.before())
        }
        if word.isWord("movedBefore") { return .movedBefore(try root.before()) }
        return nil
    }

    private static func result(
        _ root: JSONNode
    ) throws(RealtimeError) -> Result<EJSON, DDPError> {
        if let error = root.member("error") { return .failure(DDPError(error)) }
        guard let result = root.member("result") else { return .success(.null) }
        return .success(try EJSON(result))
    }
}

private func missing(_ what: StaticString) -> RealtimeError {
    RealtimeError(.protocolViolation, "a message lacks \(what)")
}

extension JSONNode {
    fileprivate func withWord(
        _ body: (UnsafeRawBufferPointer) throws(RealtimeError) -> DDPMessage?
    ) throws(RealtimeError) -> DDPMessage? {
        let outcome = withString { word -> Result<DDPMessage?, RealtimeError> in
            do throws(RealtimeError) {
                return .success(try body(word))
            } catch {
                return .failure(error)
            }
        }
        return try outcome?.get() ?? nil
    }

    fileprivate func text(_ name: StaticString) throws(RealtimeError) -> String {
        guard let text = member(name)?.string else { throw missing(name) }
        return text
    }

    fileprivate func texts(
        _ name: StaticString, isOptional: Bool = false
    ) throws(RealtimeError) -> [String] {
        guard let list = member(name), list.kind == .array else {
            if isOptional { return [] }
            throw missing(name)
        }
        var texts: [String] = []
        for element in list.elements {
            guard let text = element.string else { throw missing(name) }
            texts.append(text)
        }
        return texts
    }

    /// The fields of a document. Absent ones are none, and one named `_id` is ignored.
    fileprivate func fields() throws(RealtimeError) -> EJSONObject {
        guard let node = member("fields") else { return EJSONObject() }
        guard case .object(var fields) = try EJSON(node) else { throw missing("fields") }
        fields["_id"] = nil
        return fields
    }

    fileprivate func before() throws(RealtimeError) -> DocumentID? {
        guard let node = member("before"), node.kind != .null else { return nil }
        guard let id = node.string.flatMap({ DocumentID(wire: $0) }) else {
            throw missing("before")
        }
        return id
    }
}
