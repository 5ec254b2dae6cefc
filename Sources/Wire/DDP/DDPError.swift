/// Why a call or a subscription failed: an error of the server or of a stub, or our own.
package struct DDPError: Error, Sendable, Equatable {
    package enum Kind: Sendable {
        /// Sent by the server.
        case server
        /// Thrown by a stub, or by an operation in it.
        case stub
        /// A call that must not be repeated was sent, and the connection was lost before its
        /// result. It may have run on the server.
        case invocationFailed
        /// The connection has ended for good.
        case disconnected
        /// The time limit of the call has passed. It may have run on the server.
        case timedOut
        /// The client was closed.
        case closed
    }

    /// What programs compare. Old servers send numbers such as 404, others texts.
    package enum Code: Sendable, Equatable {
        case text(String)
        case number(Double)
    }

    package let kind: Kind
    package let code: Code
    /// A sentence for people. Its wording depends on the server's version.
    package let reason: String?
    /// A JSON text.
    package let details: [UInt8]?
    /// The whole error of the server as a JSON text; empty for other errors.
    package let source: [UInt8]

    /// - Parameter details: a JSON text.
    package init(
        _ kind: Kind, _ code: Code, reason: String? = nil, details: [UInt8]? = nil
    ) {
        self.kind = kind
        self.code = code
        self.reason = reason
        self.details = details
        source = []
    }

    /// One of our own errors.
    package init(_ kind: Kind, reason: String) {
        let code =
            switch kind {
            case .server, .stub: "error"
            case .invocationFailed: "invocation-failed"
            case .disconnected: "disconnected"
            case .timedOut: "timeout"
            case .closed: "closed"
            }
        self.init(kind, .text(code), reason: reason)
    }

    /// The `error` of a message. Only its member `error` is certain; without it, or if it is
    /// neither a text nor a number, the code is `error`.
    init(_ node: JSONNode) {
        kind = .server
        let code = node.member("error") ?? node
        self.code =
            code.string.map { .text($0) } ?? code.double.map { .number($0) } ?? .text("error")
        reason = node.member("reason")?.string
        details = node.member("details")?.span.compact
        source = node.span.compact
    }

    /// In how many milliseconds a request that exceeded the server's limit may be repeated; nil
    /// if this is another error.
    package var timeToReset: Duration? {
        guard code == .text("too-many-requests") else { return nil }
        var document = JSONDocument()
        let time = (details ?? []).withUnsafeBytes { text in
            try? document.read(text) { $0.member("timeToReset")?.double }
        }
        guard let milliseconds = time ?? nil else { return .zero }
        return .milliseconds(Int64(max(0, min(milliseconds, 86_400_000))))
    }
}
