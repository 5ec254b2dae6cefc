/// Reads the messages of the server. Storage is reused from message to message.
package struct DDPReader: ~Copyable {
    private var document = JSONDocument()
    private let names = KnownFieldNames()
    private let maximumValues: Int

    /// - Parameter maximumBytes: how much memory a message may take once it is read; 0 for any. It
    ///   may always have 65,536 values and names.
    package init(maximumBytes: Int = 0) {
        maximumValues = JSONDocument.tokens(in: maximumBytes)
    }

    /// - Parameter text: a message, in UTF-8.
    package mutating func read(_ text: UnsafeRawBufferPointer) -> DDPFrame {
        let names = names
        do throws(RealtimeError) {
            return try document.read(text, maximumTokens: maximumValues) {
                root throws(RealtimeError) in
                DDPReader.frame(DDPMembers(root), names)
            }
        } catch {
            return error.code == .tooLarge ? large(text, error) : unreadable(text, error)
        }
    }

    /// A text that is not JSON, or a message that is nested too deeply. That counts as a message,
    /// and ends the call or the subscription that waits for it.
    private mutating func unreadable(
        _ text: UnsafeRawBufferPointer, _ error: RealtimeError
    ) -> DDPFrame {
        let frame = try? document.readTop(text, maximumTokens: maximumValues) {
            root throws(RealtimeError) -> DDPFrame? in
            guard let msg = root.member("msg"), msg.kind == .string else { return nil }
            let id = root.member("id")?.string
            let kind = msg.withString { Kind($0) } ?? nil
            if let answer = DDPReader.answer(kind, id, error) { return .message(answer) }
            switch kind {
            case .ping?, .pong?: return nil
            default: return .ignored(reason: error.message, isMessage: true)
            }
        }
        return (frame ?? nil) ?? .ignored(reason: error.message, isMessage: false)
    }

    /// A message whose values take too much memory: the call or the subscription that waits for it
    /// ends. One that says nothing about documents is ignored.
    private func large(_ text: UnsafeRawBufferPointer, _ error: RealtimeError) -> DDPFrame {
        guard let top = DDPReader.top(text), let msg = top.msg else { return .tooLarge(error) }
        let kind = msg.withString { Kind($0) } ?? nil
        let id = top.id?.withString { String(decoding: $0, as: UTF8.self) }
        if let answer = DDPReader.answer(kind, id, error) { return .message(answer) }
        switch kind {
        case nil, .error?: return .ignored(reason: error.message, isMessage: true)
        default: return .tooLarge(error)
        }
    }

    /// What a message is, and what it answers, found without memory for what else is in it.
    private static func top(_ text: UnsafeRawBufferPointer) -> (msg: JSONSpan?, id: JSONSpan?)? {
        var scanner = JSONScanner(text)
        scanner.skipBlanks()
        var top: (msg: JSONSpan?, id: JSONSpan?) = (nil, nil)
        guard scanner.byte == UInt8(ascii: "{"), scanner.enters(.object) else { return nil }
        do throws(RealtimeError) {
            repeat {
                let name = try scanner.readName()
                let value = try scanner.readSpan(levels: JSONDocument.defaultDepth)
                if name.isWord("msg") { top.msg = value }
                if name.isWord("id") { top.id = value }
            } while try scanner.continues(in: .object)
            return top
        } catch {
            return nil
        }
    }

    /// The failure of the call or subscription that a message answers; nil if it is not an answer.
    /// - Parameter error: why it cannot be read.
    private static func answer(
        _ kind: Kind?, _ id: String?, _ error: RealtimeError
    ) -> DDPMessage? {
        guard let id else { return nil }
        switch kind {
        case .result?: return .result(id: id, .failure(unreadable("result", error)))
        case .nosub?: return .nosub(id: id, unreadable("error", error))
        default: return nil
        }
    }

    /// - Parameter what: of the server cannot be read: `result` or `error`.
    private static func unreadable(_ what: String, _ error: RealtimeError) -> DDPError {
        let isAtLimit = error.code == .tooLarge && error.systemError == 0
        let limit = isAtLimit ? OptionOwner.ddp.mention(.maxMessageBytes) : ""
        return DDPError(
            .server, "invalid-\(what)",
            reason: "the server's \(what) cannot be read: \(error.message)\(limit)")
    }

    private static func frame(_ members: DDPMembers, _ names: KnownFieldNames) -> DDPFrame {
        guard let name = members.msg, name.kind == .string else {
            return .ignored(reason: "not a message: it has no msg", isMessage: false)
        }
        guard let kind = name.withString({ Kind($0) }) ?? nil else {
            let word = name.string?.prefix(40) ?? ""
            return .ignored(reason: "unknown message \(word)", isMessage: true)
        }
        do throws(RealtimeError) {
            return .message(try message(kind, members, names))
        } catch {
            return .ignored(reason: error.message, isMessage: true)
        }
    }

    private enum Kind {
        case added, changed, removed, addedBefore, movedBefore
        case ready, updated, result, nosub, ping, pong, connected, failed, error

        /// - Parameter word: the message's `msg`.
        init?(_ word: UnsafeRawBufferPointer) {
            for (name, kind) in Kind.names where word.isWord(name) {
                self = kind
                return
            }
            return nil
        }

        private static let names: [(StaticString, Kind)] = [
            ("added", .added), ("changed", .changed), ("removed", .removed),
            ("result", .result), ("updated", .updated), ("ready", .ready), ("nosub", .nosub),
            ("ping", .ping), ("pong", .pong), ("connected", .connected), ("failed", .failed),
            ("error", .error), ("addedBefore", .addedBefore), ("movedBefore", .movedBefore),
        ]
    }

    private static func message(
        _ kind: Kind, _ members: DDPMembers, _ names: KnownFieldNames
    ) throws(RealtimeError) -> DDPMessage {
        let root = members.root
        switch kind {
        case .added: return try members.document(.added(try members.fields(names)))
        case .changed:
            let cleared = try root.texts("cleared", isOptional: true)
            return try members.document(.changed(try members.fields(names), cleared: cleared))
        case .removed: return try members.document(.removed)
        case .addedBefore:
            let fields = try members.fields(names)
            return try members.document(.addedBefore(fields, before: try root.before()))
        case .movedBefore: return try members.document(.movedBefore(try root.before()))
        case .ready: return .ready(try root.texts("subs"))
        case .updated: return .updated(try root.texts("methods"))
        case .result: return .result(id: try root.text("id"), result(root, names))
        case .nosub:
            return .nosub(id: try root.text("id"), root.error.map { DDPError($0) })
        case .ping: return .ping(id: root.member("id")?.span.compact)
        case .pong: return .pong
        case .connected: return .connected(session: root.member("session")?.string)
        case .failed: return .failed(version: try root.text("version"))
        case .error:
            return .error(
                reason: root.member("reason")?.string ?? "",
                offending: root.member("offendingMessage")?.span.compact)
        }
    }

    private static func result(
        _ root: JSONNode, _ names: KnownFieldNames
    ) -> Result<EJSON, DDPError> {
        if let error = root.error { return .failure(DDPError(error)) }
        guard let result = root.member("result") else { return .success(.null) }
        do throws(RealtimeError) {
            return .success(try EJSON(result, names))
        } catch {
            return .failure(unreadable("result", error))
        }
    }
}

/// The members that most messages have, found in one pass. Of members with one name the last one
/// counts.
private struct DDPMembers {
    let root: JSONNode
    private(set) var msg: JSONNode?
    private var id: JSONNode?
    private var collection: JSONNode?
    private var fields: JSONNode?

    private enum Name { case msg, id, collection, fields }

    init(_ root: JSONNode) {
        self.root = root
        for (name, value) in root.members {
            switch name.withString({ DDPMembers.name($0) }) ?? nil {
            case .msg?: msg = value
            case .id?: id = value
            case .collection?: collection = value
            case .fields?: fields = value
            case nil: break
            }
        }
    }

    private static func name(_ text: UnsafeRawBufferPointer) -> Name? {
        switch text.count {
        case 2 where text.isWord("id"): .id
        case 3 where text.isWord("msg"): .msg
        case 6 where text.isWord("fields"): .fields
        case 10 where text.isWord("collection"): .collection
        default: nil
        }
    }

    func document(
        _ change: consuming DDPDocumentMessage.Change
    ) throws(RealtimeError) -> DDPMessage {
        guard let collection = collection?.string else { throw missing("collection") }
        guard let id, id.kind == .string else { throw missing("id") }
        guard let id = id.withString({ DocumentID(wire: $0) }) ?? nil else {
            throw missing("a document's id")
        }
        return .document(DDPDocumentMessage(collection: collection, id: id, change: change))
    }

    /// The fields of a document. Absent ones are none, and one named `_id` is ignored.
    func fields(_ names: KnownFieldNames) throws(RealtimeError) -> EJSONObject {
        guard let fields else { return EJSONObject() }
        guard case .object(var object) = try EJSON(fields, names) else { throw missing("fields") }
        if object.hasID { object["_id"] = nil }
        return object
    }
}

private func missing(_ what: StaticString) -> RealtimeError {
    RealtimeError(.protocolViolation, "a message lacks \(what)")
}

extension JSONNode {
    /// The member `error`, unless it is null.
    fileprivate var error: JSONNode? {
        member("error").flatMap { $0.kind == .null ? nil : $0 }
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

    fileprivate func before() throws(RealtimeError) -> DocumentID? {
        guard let node = member("before"), node.kind != .null else { return nil }
        guard let id = (node.withString { DocumentID(wire: $0) } ?? nil) else {
            throw missing("before")
        }
        return id
    }
}
