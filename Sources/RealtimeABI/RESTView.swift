import Engine
import Session
import Wire

// What C sees of an answer, and its callbacks as the engine's handlers. Nothing here is exported.

/// An answer while a callback looks at it. Its texts are made when they are asked for.
final class RESTView: Handle {
    static let name = "response"
    var owningLoop: Loop? { nil }
    let outcome: RESTOutcome
    private let kept: RESTBody
    let httpVersion: Int32
    @exclusivity(unchecked) private var texts: [String: UnsafeMutableBufferPointer<CChar>] = [:]

    init(_ outcome: RESTOutcome, _ body: RESTBody, _ httpVersion: Int) {
        self.outcome = outcome
        kept = body
        self.httpVersion = Int32(clamping: httpVersion)
    }

    deinit {
        for text in texts.values { text.deallocate() }
    }

    static var empty: UnsafePointer<CChar> {
        UnsafeRawPointer(StaticString("").utf8Start).assumingMemoryBound(to: CChar.self)
    }

    var error: rt_status { outcome.error?.code.rawValue ?? RT_STATUS.OK.rawValue }
    var message: UnsafePointer<CChar> {
        text("message") { Array((outcome.error?.message ?? "").utf8) }
    }
    var status: Int32 {
        Int32(clamping: outcome.head?.status ?? outcome.error?.proxyStatus ?? 0)
    }
    var body: UnsafeRawBufferPointer { kept.bytes }
    var reason: UnsafePointer<CChar> { text("reason") { outcome.head?.reasonText.bytes ?? [] } }
    var url: UnsafePointer<CChar> { text("url") { Array(outcome.url.text.utf8) } }

    var headers: UnsafePointer<CChar> { text("headers") { headerLines } }
    var headersLength: Int { headerLines.count }

    private var headerLines: [UInt8] {
        (outcome.head?.fields ?? []).reduce(into: []) { $0 += headerLine($1.name, $1.content) }
    }

    var retryAfter: Int64 {
        guard let time = outcome.retryAfter else { return -1 }
        return Int64(clamping: time.clampedNanoseconds / 1_000_000)
    }

    func header(_ name: String) -> UnsafePointer<CChar>? {
        guard let value = outcome.head?.contents(name).first else { return nil }
        return text("header " + name) { value.bytes }
    }

    private func text(_ key: String, _ make: () -> [UInt8]) -> UnsafePointer<CChar> {
        if let base = texts[key]?.baseAddress { return UnsafePointer(base) }
        let bytes = make().map { CChar(bitPattern: $0) } + [0]
        let copy = UnsafeMutableBufferPointer<CChar>.allocate(capacity: bytes.count)
        _ = copy.initialize(from: bytes)
        texts[key] = copy
        return copy.baseAddress.map { UnsafePointer($0) } ?? RESTView.empty
    }

    /// Calls `function` with a view that ends with the call.
    static func show(
        _ outcome: RESTOutcome, _ body: RESTBody, _ httpVersion: Int,
        to function: (rt_rest_response?) -> Void
    ) {
        let view = RESTView(outcome, body, httpVersion)
        withExtendedLifetime(view) {
            function(OpaquePointer(Unmanaged.passUnretained(view).toOpaque()))
        }
    }
}

extension RESTClient {
    func setCredentials(_ box: CallbackBox<rt_rest_credentials_fn>) throws(RealtimeError) {
        try setCredentialsHandler(
            box.function.map { function in
                {
                    try named(
                        function(box.user), "what the credentials callback answered",
                        "RT_CREDENTIALS_NONE, RT_CREDENTIALS_READY or RT_CREDENTIALS_LATER")
                }
            })
    }
}

extension RESTRequestBuilder {
    func setSource(
        _ box: CallbackBox<rt_rest_source_fn>, _ rewind: rt_rest_rewind_fn?, length: Int?
    ) {
        guard let function = box.function else { return }
        setBody(
            length: length,
            { space in
                let base = space.baseAddress?.assumingMemoryBound(to: UInt8.self)
                switch function(base, space.count, box.user) {
                case Int64(RT_REST_BODY.END.rawValue): return .end
                case Int64(RT_REST_BODY.WAIT.rawValue): return .wait
                case let count where count > 0: return .bytes(Int(count))
                default: return .fail
                }
            }, rewind: rewind.map { rewind in { rewind(box.user) } })
    }

    func setHead(_ box: CallbackBox<rt_rest_head_fn>) {
        changeHandlers {
            $0.head = box.function.map { function in
                { head in
                    RESTView.show(head.outcome, .empty, head.httpVersion) { function($0, box.user) }
                }
            }
        }
    }

    func setPieces(_ box: CallbackBox<rt_rest_body_fn>) {
        changeHandlers {
            $0.body = box.function.map { function in
                { bytes in
                    let base = (bytes.baseAddress ?? emptyBase).assumingMemoryBound(to: UInt8.self)
                    function(base, bytes.count, box.user)
                }
            }
        }
    }

    func setProgress(_ box: CallbackBox<rt_rest_progress_fn>) {
        changeHandlers {
            $0.progress = box.function.map { function in
                { function($0.sent, $0.toSend, $0.received, $0.toReceive, box.user) }
            }
        }
    }

    func send(to box: CallbackBox<rt_rest_done_fn>) throws(RealtimeError) -> UInt64 {
        changeHandlers {
            $0.done = { result in
                // Kept without a function too: its user data lives until the request ends.
                guard let function = box.function else { return }
                RESTView.show(result.outcome, result.body, result.httpVersion) {
                    function($0, box.user)
                }
            }
        }
        defer { changeHandlers { $0.done = nil } }
        return try send()
    }
}
