import CShims
import Engine
import Session
import Wire

// Fills the views. Nothing here is exported.

/// The texts of a view, NUL-terminated, in one block of memory.
struct ViewTexts {
    private var bytes: [UInt8] = []

    struct Text {
        fileprivate let start: Int
        let count: Int
    }

    mutating func add(_ text: some Collection<UInt8>) -> Text {
        defer {
            bytes.append(contentsOf: text)
            bytes.append(0)
        }
        return Text(start: bytes.count, count: text.count)
    }

    mutating func add(_ text: String) -> Text { add(text.utf8) }

    /// Adds a value as EJSON text.
    mutating func add(_ value: EJSON) -> Text {
        let start = bytes.count
        value.write(to: &bytes)
        defer { bytes.append(0) }
        return Text(start: start, count: bytes.count - start)
    }

    /// Adds headers, in the format of C's views.
    mutating func add(_ headers: [HTTPResponse.Header]) -> Text {
        add(headers.reduce(into: []) { $0 += headerLine($1.name, $1.content) })
    }

    /// Maps a text to its address.
    typealias Locate = (Text) -> UnsafePointer<CChar>

    /// Calls `body` with a function that returns each text's address.
    func read<Result>(_ body: (Locate) -> Result) -> Result {
        bytes.withUnsafeBytes { base in
            body { characters(UnsafeRawBufferPointer(rebasing: base[$0.start...])) }
        }
    }

    /// A struct and these texts in one block of memory, which the caller frees with `Inbox.free`.
    /// - Parameters:
    ///   - room: how many bytes to leave after the struct.
    ///   - make: gets the struct's address too, for pointers into itself.
    func copied<View>(
        room: Int = 0, _ make: (Locate, UnsafeRawPointer) -> View
    ) -> UnsafeMutableRawPointer {
        let size = MemoryLayout<View>.size + room
        let block: UnsafeMutableRawPointer = shim_grow(nil, size + bytes.count)
        let texts = UnsafeMutableRawBufferPointer(start: block + size, count: bytes.count)
        texts.copyBytes(from: bytes)
        let view = make(
            { characters(UnsafeRawBufferPointer(rebasing: texts[$0.start...])) },
            UnsafeRawPointer(block))
        block.initializeMemory(as: View.self, to: view)
        return block
    }

    /// Like `read`, but the memory lives as long as the view.
    func keep<View>(_ make: (Locate) -> View) -> KeptView<View> { KeptView(bytes, make) }
}

/// Owns a view and its texts.
final class KeptView<View> {
    private let texts: UnsafeMutableRawBufferPointer
    let pointer: UnsafeMutablePointer<View>

    fileprivate init(_ bytes: [UInt8], _ make: (ViewTexts.Locate) -> View) {
        let texts = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        texts.copyBytes(from: bytes)
        pointer = .allocate(capacity: 1)
        pointer.initialize(
            to: make { characters(UnsafeRawBufferPointer(rebasing: texts[$0.start...])) })
        self.texts = texts
    }

    deinit {
        pointer.deinitialize(count: 1)
        pointer.deallocate()
        texts.deallocate()
    }
}

extension Opened {
    /// Calls `body` with a view of this.
    func show(
        transport: Int32 = 0, resumed: Bool = false, _ body: (UnsafePointer<rt_opened>) -> Void
    ) {
        var texts = ViewTexts()
        let make = fill(&texts, transport: transport, resumed: resumed)
        texts.read { text in
            var view = make(text)
            body(&view)
        }
    }

    /// A view of the response to a request, which outlives the call.
    var keptView: KeptView<rt_opened> {
        var texts = ViewTexts()
        let make = fill(&texts, transport: 0, resumed: false)
        return texts.keep(make)
    }

    private func fill(
        _ texts: inout ViewTexts, transport: Int32, resumed: Bool
    ) -> (ViewTexts.Locate) -> rt_opened {
        let reason = texts.add(response?.reasonText.bytes ?? [])
        let headers = texts.add(response?.headers ?? [])
        let subprotocol = texts.add(subprotocol)
        let extensions = texts.add(extensions)
        let (remote, local) = (texts.add(remoteAddress), texts.add(localAddress))
        let (version, cipher) = (texts.add(tlsVersion), texts.add(tlsCipher))
        return { text in
            rt_opened(
                struct_bytes: MemoryLayout<rt_opened>.size,
                http_status: Int32(clamping: response?.status ?? 0),
                http_version: Int32(clamping: httpVersion), http_reason: text(reason),
                headers: text(headers), headers_length: headers.count,
                subprotocol: text(subprotocol), extensions: text(extensions),
                remote_address: text(remote), local_address: text(local),
                tls_version: text(version), tls_cipher: text(cipher), transport: transport,
                resumed: resumed)
        }
    }
}

/// The contents of an `rt_failure`.
struct FailureView {
    var error: RealtimeError
    var httpStatus = 0
    var retryIn: Duration?
    var attempt = 0
    var isFatal = false
    var transport: Int32 = 0
    var closeCode: UInt16 = 0
    var closeReason = ""

    /// Calls `body` with a view of this.
    func show<Result>(_ body: (UnsafePointer<rt_failure>) -> Result) -> Result {
        var texts = ViewTexts()
        let make = fill(&texts)
        return texts.read { text in
            var view = make(text)
            return body(&view)
        }
    }

    /// A view of a request's failure, which outlives the call.
    var keptView: KeptView<rt_failure> {
        var texts = ViewTexts()
        let make = fill(&texts)
        return texts.keep(make)
    }

    private func fill(_ texts: inout ViewTexts) -> (ViewTexts.Locate) -> rt_failure {
        let response = error.response
        let message = texts.add(error.message)
        let reason = texts.add(response?.reasonText.bytes ?? [])
        let headers = texts.add(response?.headers ?? [])
        let content = texts.add(response?.body ?? [])
        let closeReason = texts.add(closeReason)
        return { text in
            rt_failure(
                struct_bytes: MemoryLayout<rt_failure>.size, status: error.code.rawValue,
                http_status: Int32(clamping: httpStatus), message: text(message),
                http_reason: text(reason), headers: text(headers),
                headers_length: headers.count,
                body: UnsafeRawPointer(text(content)).assumingMemoryBound(to: UInt8.self),
                body_length: content.count,
                retry_in_ms: retryIn.map { EventSourceConnection.milliseconds($0) } ?? -1,
                attempt: UInt32(clamping: attempt), system_error: error.systemError,
                transport: transport, fatal: isFatal, close_code: closeCode,
                close_reason: text(closeReason), close_reason_length: closeReason.count)
        }
    }
}

extension HTTPSourceFailure {
    var view: FailureView {
        FailureView(
            error: error, httpStatus: status, retryIn: retryIn, attempt: attempt,
            isFatal: isFatal)
    }
}

/// The contents of an `rt_closed`.
struct ClosedView {
    var error: RealtimeError?
    var code: UInt16 = 0
    var reason = ""
    var isClean = false

    /// Calls `body` with a view of this.
    func show(_ body: (UnsafePointer<rt_closed>) -> Void) {
        var texts = ViewTexts()
        let message = texts.add(error?.message ?? "")
        let reason = texts.add(reason)
        texts.read { text in
            var view = rt_closed(
                struct_bytes: MemoryLayout<rt_closed>.size,
                status: error?.code.rawValue ?? RT_STATUS.OK.rawValue, code: code,
                clean: isClean, message: text(message), reason: text(reason),
                reason_length: reason.count)
            body(&view)
        }
    }
}

// Engine handlers that call a C function with a view; nil for NULL.

func openedHandler(_ box: CallbackBox<rt_opened_fn>) -> ((Opened) -> Void)? {
    box.function.map { function in { $0.show { function($0, box.user) } } }
}

/// - Throws: `.notFound` without one.
func show(
    _ opened: Opened?, to fn: rt_opened_fn?, _ user: UnsafeMutableRawPointer?
) throws(RealtimeError) {
    let fn = try required(fn, "fn")
    guard let opened else {
        throw RealtimeError(.notFound, "there was no connection yet")
    }
    opened.show { fn($0, user) }
}

func failureHandler(_ box: CallbackBox<rt_failure_fn>) -> ((HTTPSourceFailure) -> Void)? {
    box.function.map { function in { $0.view.show { function($0, box.user) } } }
}

// These two do not use `map`: Swift 6.3.1 crashes on one that returns a throwing closure.

func attemptHandler(_ box: CallbackBox<rt_attempt_fn>) -> ((Int) throws(RealtimeError) -> Bool)? {
    guard let function = box.function else { return nil }
    return { function(UInt32(clamping: $0), box.user) }
}

func credentialsHandler(
    _ box: CallbackBox<rt_credentials_fn>
) -> ((HTTPResponse) throws(RealtimeError) -> CredentialsAnswer)? {
    guard let function = box.function else { return nil }
    return { (response) throws(RealtimeError) in
        let error = RealtimeError(
            .httpStatus, "the server answered \(response.status)", response: response)
        let refusal = FailureView(error: error, httpStatus: response.status)
        return try named(
            refusal.show { function($0, box.user) }, "what the credentials callback answered",
            "RT_CREDENTIALS_NONE, RT_CREDENTIALS_READY or RT_CREDENTIALS_LATER")
    }
}
