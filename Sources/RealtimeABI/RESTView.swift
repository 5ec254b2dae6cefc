import Engine
import Session
import Wire

// What C sees of an answer, and its callbacks as the engine's handlers. Nothing here is exported.

/// An answer while a callback looks at it. Its texts are made when they are asked for.
final class RESTView: Handle {
    static let name = "response"
    var owningLoop: Loop? { nil }
    let outcome: RESTOutcome
    let body: UnsafeRawBufferPointer
    let httpVersion: Int32
    @exclusivity(unchecked) private var texts: [String: UnsafeMutableBufferPointer<CChar>] = [:]

    init(_ outcome: RESTOutcome, _ body: UnsafeRawBufferPointer, _ httpVersion: Int) {
        self.outcome = outcome
        self.body = body
        self.httpVersion = Int32(clamping: httpVersion)
    }

    deinit {
        for text in texts.values { text.deallocate() }
    }

    static var empty: UnsafePointer<CChar> {
        UnsafeRawPointer(StaticString("").utf8Start).assumingMemoryBound(to: CChar.self)
    }

    var error: rt_status { outcome.error?.code.rawValue ?? RT_STATUS.OK.rawValue }
    var message: UnsafePointer<CChar> { text("message") { outcome.error?.message ?? "" } }
    var status: Int32 { Int32(clamping: outcome.head?.status ?? 0) }
    var reason: UnsafePointer<CChar> { text("reason") { outcome.head?.reason ?? "" } }
    var url: UnsafePointer<CChar> { text("url") { outcome.url.text } }

    var headers: UnsafePointer<CChar> {
        text("headers") {
            (outcome.head?.fields ?? []).reduce(into: "") { $0 += "\($1.name): \($1.value)\n" }
        }
    }

    var headersLength: Int {
        (outcome.head?.fields ?? []).reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 3 }
    }

    var retryAfter: Int64 {
        guard let time = outcome.retryAfter else { return -1 }
        return Int64(clamping: time.clampedNanoseconds / 1_000_000)
    }

    func header(_ name: String) -> UnsafePointer<CChar>? {
        guard let value = outcome.head?.values(name).first else { return nil }
        return text("header " + name) { value }
    }

    private func text(_ key: String, _ make: () -> String) -> UnsafePointer<CChar> {
        if let base = texts[key]?.baseAddress { return UnsafePointer(base) }
        let bytes = make().utf8CString
        let copy = UnsafeMutableBufferPointer<CChar>.allocate(capacity: bytes.count)
        _ = copy.initialize(from: bytes)
        texts[key] = copy
        return copy.baseAddress.map { UnsafePointer($0) } ?? RESTView.empty
    }

    /// Calls `function` with a view that ends with the call.
    static func show(
        _ outcome: RESTOutcome, _ body: [UInt8], _ httpVersion: Int,
        to function: (rt_rest_response?) -> Void
    ) {
        body.withUnsafeBytes { bytes in
            let view = RESTView(outcome, bytes, httpVersion)
            withExtendedLifetime(view) {
                function(OpaquePointer(Unmanaged.passUnretained(view).toOpaque()))
            }
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
        handlers.head = box.function.map { function in
            { head in
                RESTView.show(head.outcome, [], head.httpVersion) { function($0, box.user) }
            }
        }
    }

    func setPieces(_ box: CallbackBox<rt_rest_body_fn>) {
        handlers.body = box.function.map { function in
            { bytes in
                let base = (bytes.baseAddress ?? emptyBase).assumingMemoryBound(to: UInt8.self)
                function(base, bytes.count, box.user)
            }
        }
    }

    func setProgress(_ box: CallbackBox<rt_rest_progress_fn>) {
        handlers.progress = box.function.map { function in
            { function($0.sent, $0.toSend, $0.received, $0.toReceive, box.user) }
        }
    }

    func send(to box: CallbackBox<rt_rest_done_fn>) throws(RealtimeError) -> UInt64 {
        handlers.done = { result in
            // Kept without a function too: its user data lives until the request ends.
            guard let function = box.function else { return }
            RESTView.show(result.outcome, result.body, result.httpVersion) {
                function($0, box.user)
            }
        }
        defer { handlers.done = nil }
        return try client.send(self)
    }
}
