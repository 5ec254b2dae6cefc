/// Why a call or a subscription failed: an error of the server or of a stub, or the library's own.
public struct DDPError: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Kind: Sendable {
        /// The server sent it.
        case server
        /// A stub failed, or an operation in it.
        case stub
        /// A call that must not be repeated was sent, and the connection was lost before its
        /// result. It may have run on the server.
        case invocationFailed
        /// The connection has ended for good.
        case disconnected
        /// The time limit of the call has passed. It may have run on the server.
        case timeout
        /// The client was closed.
        case closed
    }

    public let kind: Kind
    /// What programs compare, such as `not-found` or `403`.
    public let code: String
    /// Whether the code is a number, as old servers send it.
    public let codeIsNumber: Bool
    /// A sentence for people, whose wording depends on the server's version.
    public let reason: String?
    /// Further data. A server's is plain JSON.
    public let details: EJSON?
    /// The server's whole error as JSON text; "" for other errors.
    public let source: String

    /// An error that a stub throws.
    public init(_ code: String, reason: String? = nil, details: EJSON? = nil) {
        self.init(.stub, code, reason: reason, details: details)
    }

    package init(
        _ kind: Kind, _ code: String, reason: String? = nil, details: EJSON? = nil
    ) {
        self.init(kind, code, isNumber: false, reason, details)
    }

    /// An error with a number as its code, like that of Meteor for the same fault.
    package init(_ kind: Kind, _ code: Int, reason: String) {
        self.init(kind, "\(code)", isNumber: true, reason, nil)
    }

    private init(
        _ kind: Kind, _ code: String, isNumber: Bool, _ reason: String?, _ details: EJSON?
    ) {
        self.kind = kind
        self.code = code
        codeIsNumber = isNumber
        self.reason = reason
        self.details = details
        source = ""
    }

    /// One of our own errors.
    package init(_ kind: Kind, reason: String) {
        let code =
            switch kind {
            case .server, .stub: "error"
            case .invocationFailed: "invocation-failed"
            case .disconnected: "disconnected"
            case .timeout: "timeout"
            case .closed: "closed"
            }
        self.init(kind, code, reason: reason)
    }

    /// The `error` of a message. Only its member `error` is certain; without it, or if it is
    /// neither a text nor a number, the code is `error`.
    package init(_ node: JSONNode, _ kind: Kind = .server) {
        self.kind = kind
        let code = node.member("error") ?? node
        let number = code.double.map { EJSON.number($0).text }
        self.code = code.string ?? number ?? "error"
        codeIsNumber = number != nil
        reason = node.member("reason")?.string
        details = node.member("details").flatMap { try? EJSON(plain: $0) }
        source = kind == .server ? String(decoding: node.span.compact, as: UTF8.self) : ""
    }

    /// The same without the credentials that the server quotes.
    package func redacted(by secrets: SentSecrets) -> DDPError {
        let shown = secrets.redacted(source)
        guard shown.utf8.count != source.utf8.count else { return self }
        var document = JSONDocument()
        var text = shown
        let error = text.withUTF8 { bytes in
            try? document.read(UnsafeRawBufferPointer(bytes)) { DDPError($0, kind) }
        }
        return error ?? DDPError(kind, "error", reason: secrets.redacted(description))
    }

    public var description: String { "\(reason ?? code) [\(code)]" }

    /// In how many milliseconds a request that exceeded the server's limit may be repeated; nil
    /// if this is another error.
    package var timeToReset: Duration? {
        guard code.hasSameBytes(as: "too-many-requests") else { return nil }
        guard case .object(let details)? = details, case .number(let time)? = details["timeToReset"]
        else { return .zero }
        return .milliseconds(Int64(max(0, min(time, 86_400_000))))
    }
}
