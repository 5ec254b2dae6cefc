public import Foundation
public import Realtime

// What Foundation shows of the library's errors: `localizedDescription` is the sentence that names
// the cause, and a bridged `NSError` has the domain "librealtime" and the number of
// `RealtimeError.Code`, which is that of the C interface's `rt_status`. Errors whose codes come
// from elsewhere have domains of their own.

/// An error of the library as Foundation shows it.
public protocol RealtimeFoundationError: LocalizedError, CustomNSError {}

extension RealtimeFoundationError {
    public static var errorDomain: String { RealtimeError.domain }

    public var errorUserInfo: [String: Any] {
        errorDescription.map { [NSLocalizedDescriptionKey: $0] } ?? [:]
    }
}

extension RealtimeError: RealtimeFoundationError {
    /// The domain of the library's errors in an `NSError`.
    public static let domain = "librealtime"

    public var errorCode: Int { Int(code.rawValue) }
    public var errorDescription: String? { message }
}

extension SourceError: RealtimeFoundationError {
    public var errorCode: Int { error.errorCode }
    public var errorDescription: String? { error.message }
}

extension WebSocket.ErrorEvent: RealtimeFoundationError {
    public var errorCode: Int { error.errorCode }
    public var errorDescription: String? { error.message }
}

/// Its domain is "librealtime.close", its code the close code.
extension WebSocket.Closing: RealtimeFoundationError {
    public static var errorDomain: String { "\(RealtimeError.domain).close" }

    public var errorCode: Int { Int(code.rawValue) }
    public var errorDescription: String? { "The connection was \(self)" }
}

extension REST.Failure: RealtimeFoundationError {
    public var errorCode: Int { Int(code.rawValue) }
    public var errorDescription: String? { message }
}

extension Spreadbot.ErrorEvent: RealtimeFoundationError {
    public var errorCode: Int { error.errorCode }
    public var errorDescription: String? { error.message }
}

extension Pusher.Failure: RealtimeFoundationError {
    public var errorCode: Int { error.errorCode }
    public var errorDescription: String? { error.message }
}

/// Its domain is "librealtime.pusher", its code that of the server; 0 without one.
extension PusherError: RealtimeFoundationError {
    public static var errorDomain: String { "\(RealtimeError.domain).pusher" }

    public var errorCode: Int { code ?? 0 }
    public var errorDescription: String? { message }
}

/// Its domain is "librealtime.ddp", its code that of the server if it is a number, otherwise 0.
extension DDPError: RealtimeFoundationError {
    public static var errorDomain: String { "\(RealtimeError.domain).ddp" }

    public var errorCode: Int { Int(code) ?? 0 }
    public var errorDescription: String? { description }
}
