internal import Engine
public import Wire

/// An event of a channel, of the connection or of the signed-in user.
public struct PusherEvent: Sendable {
    /// What all handlers of an event share.
    final class Copy: Sendable {
        fileprivate let eventName: String
        fileprivate let channelName: String?
        fileprivate let data: String?
        fileprivate let userId: String?
        /// The whole message.
        fileprivate let source: [UInt8]

        /// - Parameter channel: the event's channel, if it is registered.
        init(_ view: PusherEventView, _ channel: PusherChannelHandle?) {
            eventName = String(decoding: view.event, as: UTF8.self)
            channelName = channel?.name ?? view.channel.map { String(decoding: $0, as: UTF8.self) }
            data = view.data.kind == .none ? nil : String(decoding: view.data.bytes, as: UTF8.self)
            userId = view.userID.map { String(decoding: $0, as: UTF8.self) }
            source = Array(view.source)
        }
    }

    private let copy: Copy

    public var eventName: String { copy.eventName }
    /// nil for an event of the connection.
    public var channelName: String? { copy.channelName }
    /// The data as the server sent it, usually a JSON text; nil if there is none.
    public var data: String? { copy.data }
    /// The sender of a client event on a presence channel, as the server names it. Only this name
    /// can be trusted.
    public var userId: String? { copy.userId }

    init(_ copy: Copy) { self.copy = copy }

    /// The data, parsed. A text that is not JSON is a string; nil without data.
    public var json: JSONValue? {
        data.map { data in (try? JSONValue(parsing: data)) ?? .string(data) }
    }

    /// A member of the message, such as one that only some servers send; nil if there is none.
    /// Objects are `[String: Any]`, arrays `[Any]`.
    public func property(withKey key: String) -> Any? { property(key)?.anyValue }

    /// A member of the message; nil if there is none.
    public func property(_ name: String) -> JSONValue? {
        (try? JSONValue(parsing: copy.source))?[name]
    }

    /// What callbacks of a channel without an event object receive.
    func plainData(parsed: Bool) -> Any? { parsed ? json?.anyValue : data }

    /// What callbacks for all events without an event object receive.
    var plainMessage: Any? {
        var message: [String: Any] = ["event": eventName]
        if let channelName { message["channel"] = channelName }
        if eventName == "pusher:error" {
            message["data"] = json?.anyValue
        } else {
            message["data"] = data
        }
        return message
    }
}

extension PusherEvent: MailboxElement {
    /// The bytes that count against `maxBufferedBytes`.
    var count: Int { copy.source.count }
}
