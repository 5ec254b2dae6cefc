public import Wire

/// The state of a connection. The numbers are PusherSwift's.
public enum ConnectionState: Int, Sendable, CaseIterable {
    case connecting = 0
    case connected = 1
    case disconnecting = 2
    /// No attempt follows by itself.
    case disconnected = 3
    /// An attempt will follow.
    case reconnecting = 4

    public func stringValue() -> String { "\(self)" }
}

/// An error that the server reported, or that a call without `throws` met.
public struct PusherError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Pusher's code; nil if the server sent none, and for errors of calls.
    public let code: Int?
    public let message: String
    /// The channel that the server named.
    public let channelName: String?

    public var description: String { code.map { "\(message) (\($0))" } ?? message }

    init(_ code: Int?, _ message: String, channelName: String? = nil) {
        self.code = code
        self.message = message
        self.channelName = channelName
    }
}

/// Observes a connection, on the main actor. Every function is optional. `Pusher` has closures for
/// the same events, which can run elsewhere.
@MainActor public protocol PusherDelegate: AnyObject, Sendable {
    func changedConnectionState(from old: ConnectionState, to new: ConnectionState)
    func subscribedToChannel(name: String)
    /// - Parameters:
    ///   - response: the response of the authorization endpoint, if it refused.
    ///   - data: its body, or what the server sent with its refusal.
    func failedToSubscribeToChannel(
        name: String, response: HTTPResponse?, data: String?, error: RealtimeError?)
    /// Receives a line for each message and each decision, without secrets.
    func debugLog(message: String)
    /// Receives the errors that the server reports, and those of calls without `throws`.
    func receivedError(error: PusherError)
    func failedToDecryptEvent(eventName: String, channelName: String, data: String?)

    func registeredForPushNotifications(clientId: String)
    /// - Parameter response: nil if none came.
    func failedToRegisterForPushNotifications(response: HTTPResponse?, responseBody: String?)
    func subscribedToInterest(name: String)
    func subscribedToInterests(interests: [String])
    func unsubscribedFromInterest(name: String)
}

extension PusherDelegate {
    public func changedConnectionState(from old: ConnectionState, to new: ConnectionState) {}
    public func subscribedToChannel(name: String) {}
    public func failedToSubscribeToChannel(
        name: String, response: HTTPResponse?, data: String?, error: RealtimeError?
    ) {}
    public func debugLog(message: String) { DebugLogUse.isDefault = true }
    public func receivedError(error: PusherError) {}
    public func failedToDecryptEvent(eventName: String, channelName: String, data: String?) {}
    public func registeredForPushNotifications(clientId: String) {}
    public func failedToRegisterForPushNotifications(
        response: HTTPResponse?, responseBody: String?
    ) {}
    public func subscribedToInterest(name: String) {}
    public func subscribedToInterests(interests: [String]) {}
    public func unsubscribedFromInterest(name: String) {}
}

/// Finds out whether a delegate has a `debugLog` of its own: without one, no lines are written.
@MainActor enum DebugLogUse {
    fileprivate(set) static var isDefault = false

    /// - Returns: false if the delegate does not use the line.
    static func takes(_ message: String, _ delegate: any PusherDelegate) -> Bool {
        isDefault = false
        delegate.debugLog(message: message)
        return !isDefault
    }
}
