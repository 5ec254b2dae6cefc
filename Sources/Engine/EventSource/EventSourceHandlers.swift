package import Session
package import Wire

/// What the caller says when the server wants credentials.
package enum CredentialsAnswer: Int32, Sendable {
    /// There are none: the source fails.
    case none = 0
    /// They are in the headers now: the request goes out once more.
    case ready = 1
    /// They are being fetched: the source waits for `credentialsAreReady`.
    case later = 2
}

/// What an event source calls, on its loop's thread, one at a time.
///
/// Unchecked because handlers may be set on any thread and are called on the loop's: callers of the
/// C interface promise that theirs bear it, Swift's are Sendable.
package struct EventSourceHandlers: HTTPSourceHandlers, @unchecked Sendable {
    /// Called with one event, whose texts are valid until it returns.
    package typealias Event = (StreamEvent) -> Void

    /// A listener for events of one type.
    package struct Listener {
        package let token: UInt64
        package let type: [UInt8]
        package let handle: Event
    }

    package var open: (() -> Void)?
    /// Events of the type "message", named or not.
    package var message: Event?
    /// Every event, after those who listen to its type.
    package var any: Event?
    /// Every event too, behind all others: for those who await them.
    package var sink: Event?
    /// The stream gave a reconnection time, in milliseconds.
    package var retry: ((Int64) -> Void)?
    package var comment: ((UnsafeRawBufferPointer) -> Void)?
    package var error: ((HTTPSourceFailure) -> Void)?
    /// Failures too, before `error`, which counts as the one that hears them.
    package var failed: ((HTTPSourceFailure) -> Void)?
    /// An attempt of this number begins: options may be changed; false closes.
    package var request: ((Int) throws -> Bool)?
    package var credentials: ((HTTPResponse) throws -> CredentialsAnswer)?
    /// An id is to be kept under a key; "" takes it away.
    package var storeID: ((_ key: String, _ id: String) -> Void)?
    /// In the order they were added.
    package private(set) var listeners: [Listener] = []
    private var lastToken: UInt64 = 0

    package init() {}

    package mutating func addListener(_ type: [UInt8], _ handle: @escaping Event) -> UInt64 {
        lastToken += 1
        listeners.append(Listener(token: lastToken, type: type, handle: handle))
        return lastToken
    }

    /// - Returns: whether there was one.
    package mutating func removeListener(_ token: UInt64) -> Bool {
        let count = listeners.count
        listeners.removeAll { $0.token == token }
        return listeners.count < count
    }

    /// - Returns: how many there were.
    package mutating func removeListeners(_ type: [UInt8]) -> Int {
        let count = listeners.count
        listeners.removeAll { $0.type == type }
        return count - listeners.count
    }

    /// Types with a listener, each once, sorted bytewise.
    package var types: [[UInt8]] {
        var types: [[UInt8]] = []
        for listener in listeners.sorted(by: { $0.type.lexicographicallyPrecedes($1.type) })
        where types.last != listener.type {
            types.append(listener.type)
        }
        return types
    }
}
