package import Wire

/// What a long poll has seen already (docs/long-polling.md, L2 and L3).
package struct LongPollCursor: Sendable, Equatable {
    /// As the latest answer had them, byte for byte; nil for one it did not have.
    private var lastModified: FieldText?
    private var tag: FieldText?
    /// What stands for the place on every transport; "" for none.
    package private(set) var id = ""

    package init() {}

    /// Behind the message with this id.
    /// - Throws: `.invalidArgument` when validators are needed and the id is not made of them.
    package init(id: String, _ mode: LongPollCursorMode) throws(RealtimeError) {
        self.id = id
        guard mode == .validators, !id.isEmpty else { return }
        let parts = id.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let seconds = Int64(parts[0]), seconds >= 0 else {
            throw RealtimeError(
                .invalidArgument,
                "the id \(id.quoted(upTo: 60)) is not made of a time and an ETag, which polls by"
                    + " validators begin with")
        }
        lastModified = FieldText(formatHTTPDate(seconds))
        tag = FieldText(String(parts[1]))
    }

    /// The place that an answer of 200 says it reaches; nil when it says none.
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

    /// Moves to where an answer of 200 says it reaches. One that names validators alone leaves the
    /// id where it was, for those who poll by ids (docs/spreadbot.md, B13).
    package mutating func move(to head: ResponseHead, _ mode: LongPollCursorMode) {
        guard var reached = LongPollCursor(head) else { return }
        if reached.id.isEmpty, mode != .validators { reached.id = id }
        self = reached
    }

    /// Whether a request from here differs from one from `other`, by what this configuration sends:
    /// a server that is asked the same again may give the same answer for ever.
    package func asksForMore(
        than other: LongPollCursor, _ configuration: LongPollConfiguration
    ) -> Bool {
        let mode = configuration.cursorMode
        if mode == .validators || configuration.sendsValidatorsToo {
            if lastModified != other.lastModified || tag != other.tag { return true }
        }
        let sendsID =
            mode == .headerID || mode == .queryID || configuration.secondIDParameter != nil
        return sendsID && !HeaderField.haveSameBytes(id, other.id)
    }

    /// Says it to the server.
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

    /// Stands behind a message of the latest answer that has an id of its own.
    package mutating func move(to id: String) { self.id = id }
}
