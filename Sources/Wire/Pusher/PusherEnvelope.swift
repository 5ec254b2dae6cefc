/// One message of a Pusher server, valid inside `PusherEnvelopeReader.read`. Its parts are those of
/// the message's own bytes, or of the reader's storage where they had escapes.
package struct PusherEnvelope {
    package let event: UnsafeRawBufferPointer
    package let channel: UnsafeRawBufferPointer?
    package let data: PusherData
    /// The user that sent a client event on a presence channel. A number is kept as written.
    package let userID: UnsafeRawBufferPointer?
    /// The whole message.
    package let source: UnsafeRawBufferPointer
    private let root: JSONNode

    /// Any member of the message as JSON text, without a copy.
    package func property(_ name: String) -> UnsafeRawBufferPointer? {
        var found: UnsafeRawBufferPointer?
        for member in root.members {
            let isFound = member.name.withString { member in
                var name = name
                return name.withUTF8 { member.hasSameBytes(as: UnsafeRawBufferPointer($0)) }
            }
            if isFound ?? false { found = member.value.source }
        }
        return found
    }

    /// The last of members with the same name counts. A channel or user id of another type is as if
    /// it were missing.
    fileprivate init(
        _ root: JSONNode, of source: UnsafeRawBufferPointer, _ scratch: inout ByteBuffer
    ) throws(RealtimeError) {
        self.root = root
        self.source = source
        var event: JSONNode?
        var channel: JSONNode?
        var data: JSONNode?
        var userID: JSONNode?
        for member in root.members {
            switch Name(member.name) {
            case .event: event = member.value
            case .channel: channel = member.value
            case .data: data = member.value
            case .userID: userID = member.value
            case .other: break
            }
        }
        guard let event = event?.span.string(in: &scratch) else {
            throw RealtimeError(
                .protocolViolation,
                root.kind == .object
                    ? "a Pusher message has no \"event\" that is a string"
                    : "a Pusher message is not a JSON object")
        }
        self.event = event
        self.channel = channel?.span.string(in: &scratch)
        self.userID =
            userID?.kind == .number ? userID?.source : userID?.span.string(in: &scratch)
        switch data?.kind {
        case nil, .null: self.data = .none
        case .string: self.data = PusherData(.text, data?.span.string(in: &scratch) ?? event)
        case .bool, .number, .array, .object:
            self.data = PusherData(.json, data?.span.compact(in: &scratch) ?? event)
        }
    }

    private enum Name {
        case event, channel, data, userID, other

        init(_ name: JSONNode) {
            // The longest name, with each byte written as an escape of six.
            guard name.source.count <= 44 else {
                self = .other
                return
            }
            self =
                name.withString { name in
                    switch name.count {
                    case 4 where name.isWord("data"): .data
                    case 5 where name.isWord("event"): .event
                    case 7 where name.isWord("channel"): .channel
                    case 7 where name.isWord("user_id"): .userID
                    default: .other
                    }
                } ?? .other
        }
    }
}

/// Reads messages in place. Its storage is reused, so reading soon stops allocating.
package struct PusherEnvelopeReader: ~Copyable {
    private var document = JSONDocument()
    /// For parts that have escapes or blanks.
    private var scratch = ByteBuffer()
    /// Larger storage is freed before the next message.
    private static let keptBytes = 64 << 10
    private let maximumTokens: Int

    /// - Parameter maximumBytes: how much memory a message may take once it is read; 0 for any. It
    ///   may always have 65,536 values and names.
    package init(maximumBytes: Int = 0) {
        maximumTokens = JSONDocument.tokens(in: maximumBytes)
    }

    /// Reads one message.
    /// - Throws: `.protocolViolation` if it is not a JSON object with a string `event`; `.tooLarge`
    ///   for more memory than `maximumBytes`; and what `body` throws.
    package mutating func read<Result>(
        _ source: UnsafeRawBufferPointer,
        _ body: (PusherEnvelope) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        scratch.removeAll(keeping: PusherEnvelopeReader.keptBytes)
        guard scratch.hasMemory(for: source.count) else {
            throw Memory.exceeded("a message", source.count)
        }
        // All parts together are never longer than the message, so their addresses stay.
        _ = scratch.reserve(source.count)
        return try document.read(source, maximumTokens: maximumTokens) {
            root throws(RealtimeError) in
            try body(PusherEnvelope(root, of: source, &scratch))
        }
    }
}
