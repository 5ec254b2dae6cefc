internal import Engine
internal import Session
import Synchronization
public import Wire

extension Pusher {
    /// Interests for push notifications. Their requests are independent of the connection. To
    /// receive notifications is a matter of the operating system.
    public var nativePusher: NativePusher { NativePusher(connection) }
}

/// Registers a device for push notifications, and subscribes it to interests. The service is not
/// operated by Pusher any more; `PusherClientOptions.pushURL` names another one. `PusherDelegate`
/// receives the results.
public struct NativePusher: Sendable {
    /// A change of interests.
    public enum Change: Sendable, Equatable {
        case subscribe(String)
        case unsubscribe(String)
        case setSubscriptions([String])

        init(_ call: PushInterestsSession.Call) {
            self =
                switch call {
                case .subscribe(let name): .subscribe(name)
                case .unsubscribe(let name): .unsubscribe(name)
                case .setSubscriptions(let names): .setSubscriptions(names)
                }
        }
    }

    private let connection: PusherConnection

    init(_ connection: PusherConnection) {
        self.connection = connection
        connection.preparePush()
    }

    /// Registers a device. Changes of interests wait until it is registered.
    /// - Parameter platform: the service's name for the operating system, `apns` or `gcm`.
    public func register(deviceToken: [UInt8], platform: String = "apns") {
        call { (push) throws(RealtimeError) in
            try push.register(token: deviceToken, platform: platform)
        }
    }

    /// Subscribes to an interest. Changes are made one after the other; one that fails is tried six
    /// times.
    public func subscribe(interestName: String) { change(.subscribe(interestName)) }

    /// Ends the subscription of an interest.
    public func unsubscribe(interestName: String) { change(.unsubscribe(interestName)) }

    /// Replaces all interests.
    public func setSubscriptions(interests: [String]) { change(.setSubscriptions(interests)) }

    private func change(_ change: PushInterestsSession.Call) {
        call { (push) throws(RealtimeError) in try push.call(change) }
    }

    private func call(_ body: (PushInterests) throws(RealtimeError) -> Void) {
        do throws(RealtimeError) {
            if let error = connection.configurationError { throw error }
            if let push = connection.engine?.push { try body(push) }
        } catch {
            connection.dispatcher.report(error)
        }
    }

    // MARK: Handlers; the last one set counts

    /// Called with the id that the service has given to the device, or with the error.
    public func onRegistration(
        @_inheritActorContext _ handler: (
            @Sendable @isolated(any) (Result<String, RealtimeError>) -> Void
        )?
    ) {
        let handler = Handler(handler)
        connection.dispatcher.state.withLock { $0.registration = handler }
    }

    /// Called with each change of interests that was made, or was given up with an error.
    public func onChange(
        @_inheritActorContext _ handler: (
            @Sendable @isolated(any) (Change, RealtimeError?) -> Void
        )?
    ) {
        let handler = Handler(handler)
        connection.dispatcher.state.withLock { $0.interests = handler }
    }
}
