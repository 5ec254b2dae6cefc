import Engine
import Session
import Wire

/// A retained Swift object that an opaque C handle points to.
protocol Handle: AnyObject {
    static var name: String { get }
    /// The object's loop, if any. After a fork the child must not touch it.
    var owningLoop: Loop? { get }
}

extension Handle {
    static func export(_ handle: Self) -> OpaquePointer {
        OpaquePointer(Unmanaged.passRetained(handle).toOpaque())
    }

    static func borrow(_ pointer: OpaquePointer?) throws(RealtimeError) -> Self {
        exported(try required(pointer, name))
    }

    /// Like `borrow`, but returns nil for NULL.
    static func borrowOptional(_ pointer: OpaquePointer?) throws(RealtimeError) -> Self? {
        guard pointer != nil else { return nil }
        return try borrow(pointer)
    }

    /// Like `borrow`, for callers that must not throw.
    static func exported(_ pointer: OpaquePointer) -> Self {
        Unmanaged<Self>.fromOpaque(UnsafeRawPointer(pointer)).takeUnretainedValue()
    }

    /// Like `borrow`, without retaining the object: the caller must not free the handle meanwhile.
    static func borrowing<Result>(
        _ pointer: OpaquePointer?, _ body: (Self) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        let handle = Unmanaged<Self>.fromOpaque(UnsafeRawPointer(try required(pointer, name)))
        // The standard function rethrows any error, but this one must throw a `RealtimeError`.
        return try handle._withUnsafeGuaranteedRef { handle in
            Swift.Result { () throws(RealtimeError) in try body(handle) }
        }.get()
    }

    /// Frees a handle: `end` stops the object's work, then the object is released. In a forked
    /// child nothing is released, because the descriptors belong to the parent too.
    static func release(_ pointer: OpaquePointer?, _ end: (Self) -> Void) {
        guard let pointer else { return }
        let unmanaged = Unmanaged<Self>.fromOpaque(UnsafeRawPointer(pointer))
        let handle = unmanaged.takeUnretainedValue()
        if let loop = handle.owningLoop, loop.isForked { return }
        end(handle)
        unmanaged.release()
    }
}

/// Creates an object on a loop. NULL means the library's own loop, which the object leaves when it
/// is freed.
func onLoop<Result>(
    _ loop: rt_loop?, _ make: (Loop) throws(RealtimeError) -> Result
) throws(RealtimeError) -> Result {
    if loop != nil { return try make(LoopHandle.borrow(loop).loop) }
    let own = try OwnLoop.join()
    do throws(RealtimeError) {
        return try make(own)
    } catch {
        OwnLoop.leave(own)
        throw error
    }
}

final class LoopHandle: Handle {
    static let name = "loop"
    let loop: Loop
    var owningLoop: Loop? { loop }

    init(_ loop: Loop) { self.loop = loop }
}

/// A connection is its own handle, which saves an indirection for each call.
extension WebSocketConnection: Handle {
    static let name = "websocket"
    var owningLoop: Loop? { loop }
}

extension EventSourceConnection: Handle {
    static let name = "eventsource"
    var owningLoop: Loop? { loop }
}

extension LongPollConnection: Handle {
    static let name = "longpoll"
    var owningLoop: Loop? { loop }
}

extension SpreadbotConnection: Handle {
    static let name = "spreadbot"
    var owningLoop: Loop? { loop }
}

extension EventStreamReader: Handle {
    static let name = "parser"
    var owningLoop: Loop? { nil }
}

extension RESTClient: Handle {
    static let name = "rest"
    var owningLoop: Loop? { loop }
}

extension RESTRequestBuilder: Handle {
    static let name = "request"
    var owningLoop: Loop? { client.loop }
}

extension Reachability: Handle {
    static let name = "reachability"
    var owningLoop: Loop? { loop }
}

final class NetworkHandle: Handle {
    static let name = "network"
    var configuration = NetworkConfiguration()
    var owningLoop: Loop? { nil }
}

final class BackoffHandle: Handle {
    static let name = "backoff"
    private(set) var configuration = BackoffConfiguration()
    private var counter: Backoff?
    var owningLoop: Loop? { nil }

    func change(
        _ body: (inout BackoffConfiguration) throws(RealtimeError) -> Void
    ) throws(RealtimeError) {
        try body(&configuration)
        counter = nil
    }

    func next() throws(RealtimeError) -> Int64 {
        var current = counter ?? Backoff(configuration)
        defer { counter = current }
        let delay = current.failed(random: randomFraction())
        guard let delay else {
            throw RealtimeError(
                .notFound,
                "no attempt is left of \(configuration.attemptLimit)"
                    + OptionOwner.backoff.mention(.maxAttempts))
        }
        return Int64(clamping: (delay.clampedNanoseconds + 999_999) / 1_000_000)
    }

    func reset() { counter = nil }
}
