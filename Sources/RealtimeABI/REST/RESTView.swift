import CShims
import Engine
import Session
import Wire

// C's view of a response, and C callbacks as engine handlers. Nothing here is exported.

/// A response: during a callback, or for as long as the program retains it. Its texts are created
/// on demand.
final class RESTView: Handle {
    static let name = "response"
    var owningLoop: Loop? { nil }
    let outcome: RESTOutcome
    private let content: RESTBody
    /// The bytes of `content`.
    let body: UnsafeRawBufferPointer
    let httpVersion: Int32
    private let connection: Shared<Opened>?
    @exclusivity(unchecked) private var openedView: KeptView<rt_opened>?
    @exclusivity(unchecked) private var failureView: KeptView<rt_failure>?
    @exclusivity(unchecked) private var texts: [ByteText: UnsafeMutableBufferPointer<CChar>] = [:]

    init(_ result: RESTResult) {
        outcome = result.outcome
        content = result.body
        body = result.body.withBytes { $0 }
        httpVersion = Int32(clamping: result.httpVersion)
        connection = result.connection
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

    /// The response and its connection; nil without a response.
    var opened: UnsafePointer<rt_opened>? {
        guard let head = outcome.head, var opened = connection?.value else { return nil }
        opened.response = HTTPResponse(head, body: [])
        let view = openedView ?? opened.keptView
        openedView = view
        return UnsafePointer(view.pointer)
    }

    /// The failure; nil for RT_OK.
    var failure: UnsafePointer<rt_failure>? {
        guard var error = outcome.error else { return nil }
        if error.response == nil, let head = outcome.head {
            let body = Array(self.body.prefix(64 << 10))
            error = RealtimeError(
                error.code, error.message, response: HTTPResponse(head, body: body))
        }
        let new = FailureView(error: error, httpStatus: Int(status), isFatal: true)
        let view = failureView ?? new.keptView
        failureView = view
        return UnsafePointer(view.pointer)
    }

    private func text(_ key: String, _ make: () -> [UInt8]) -> UnsafePointer<CChar> {
        let key = ByteText(key)
        if let base = texts[key]?.baseAddress { return UnsafePointer(base) }
        let bytes = make().map { CChar(bitPattern: $0) } + [0]
        let copy = UnsafeMutableBufferPointer<CChar>.allocate(capacity: bytes.count)
        _ = copy.initialize(from: bytes)
        texts[key] = copy
        return copy.baseAddress.map { UnsafePointer($0) } ?? RESTView.empty
    }

    /// Calls `function` with a view, which ends with the call unless it is retained.
    static func show(
        _ result: RESTResult, to function: (rt_rest_response?) -> Void
    ) {
        RESTView(result).show(to: function)
    }

    func show(to function: (rt_rest_response?) -> Void) {
        withExtendedLifetime(self) {
            function(OpaquePointer(Unmanaged.passUnretained(self).toOpaque()))
        }
    }
}

extension CallAnswer {
    convenience init(_ response: RESTView) {
        self.init(
            response: OpaquePointer(Unmanaged.passUnretained(response).toOpaque()), of: response,
            error: response.outcome.error)
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

    func send(
        to box: CallbackBox<rt_rest_done_fn>, _ answerer: CallAnswerer?
    ) throws(RealtimeError) -> UInt64 {
        changeHandlers {
            $0.done = { result in
                // The closure keeps the box even without a function: its user data lives until the
                // request ends.
                guard box.function != nil || answerer != nil else { return }
                let view = RESTView(result)
                if let function = box.function { view.show { function($0, box.user) } }
                answerer?.set(CallAnswer(view))
            }
        }
        defer { changeHandlers { $0.done = nil } }
        return try send()
    }
}
