package import Wire

/// The position up to which a long poll has received messages (docs/long-polling.md, L2 and L3).
package struct LongPollCursor: Sendable, Equatable {
    /// Byte for byte as in the latest response; nil if it had none.
    private var lastModified: FieldText?
    private var tag: FieldText?
    /// The id that denotes the position on every transport; "" for none.
    package private(set) var id = ""

    package init() {}

    /// The position after the message with this id.
    /// - Throws: `.invalidArgument` if the cursor is made of validators, and the id does not
    ///   contain them.
    package init(id: String, _ mode: LongPollCursorMode) throws(RealtimeError) {
        self.id = id
        guard mode == .validators, !id.isEmpty else { return }
        let parts = id.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let seconds = Int64(parts[0]), seconds >= 0 else {
            throw RealtimeError(
                .invalidArgument,
                "the id \(id.quoted(upTo: 60)) is not a time and an ETag, with which polls by"
                    + " validators begin")
        }
        lastModified = FieldText(formatHTTPDate(seconds))
        tag = FieldText(String(parts[1]))
    }

    /// The position that a response with status 200 contains; nil if it contains none.
    package init?(_ head: ResponseHead) {
        lastModified = head.contents("Last-Modified").first.flatMap { $0.text.isEmpty ? nil : $0 }
        tag = head.contents("ETag").first.flatMap { $0.text.isEmpty ? nil : $0 }
        if let named = head.values("Last-Event-ID").first, !named.isEmpty {
            id = named
        } else if let lastModified, let tag, let seconds = parseHTTPDate(lastModified.text) {
            id = "\(seconds):\(tag.text)"
        }
        if lastModified == nil, tag == nil, id.isEmpty { return nil }
    }

    /// Moves to the position in a response with status 200. If it contains only validators, the id
    /// stays, for sources that poll by ids (docs/spreadbot.md, B13).
    package mutating func move(to head: ResponseHead, _ mode: LongPollCursorMode) {
        guard var reached = LongPollCursor(head) else { return }
        if reached.id.isEmpty, mode != .validators { reached.id = id }
        self = reached
    }

    /// Whether a request with this cursor differs from one with `other` under this configuration. A
    /// server that gets the same request again may return the same response forever.
    package func asksForMore(
        than other: LongPollCursor, _ configuration: LongPollConfiguration
    ) -> Bool {
        let mode = configuration.cursorMode
        if mode == .validators || configuration.sendsValidatorsToo {
            if lastModified != other.lastModified || tag != other.tag { return true }
        }
        let sendsID =
            mode == .headerID || mode == .queryID || configuration.secondIDParameter != nil
        return sendsID && !id.hasSameBytes(as: other.id)
    }

    /// Adds the cursor to a request.
    package func apply(
        to request: inout HTTPRequest, _ mode: LongPollCursorMode, parameter: String
    ) {
        switch mode {
        case .validators: applyValidators(to: &request)
        case .headerID: request.set("Last-Event-ID", id.isEmpty ? nil : id)
        case .queryID:
            if !id.isEmpty { request.url = request.url.withQuery(parameter, id) }
        case .none: break
        }
    }

    package func applyValidators(to request: inout HTTPRequest) {
        request.set("If-Modified-Since", content: lastModified)
        request.set("If-None-Match", content: tag)
    }

    /// Moves to a message of the latest response that has its own id.
    package mutating func move(to id: String) { self.id = id }
}
