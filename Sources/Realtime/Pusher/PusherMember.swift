public import Wire

/// A user on a presence channel.
public struct PusherPresenceChannelMember: Sendable, Equatable {
    public let userId: String
    /// What the server knows about the user; nil for nothing.
    public let info: JSONValue?

    /// `info` as Swift values: dictionaries, arrays, `String`, `Int`, `Double`, `Bool`. A null
    /// inside is `JSONValue.null`.
    public var userInfo: Any? { info?.anyValue }

    public init(userId: String, info: JSONValue?) {
        self.userId = userId
        self.info = info
    }

    init(_ member: PusherMember) {
        self.init(userId: member.id, info: member.info.flatMap { try? JSONValue(parsing: $0) })
    }

    /// - Parameter userInfo: dictionaries with `String` keys, arrays, strings, numbers, booleans,
    ///   `JSONValue` and nil. Other values are taken as their description.
    public init(userId: String, userInfo: Any? = nil) {
        self.init(userId: userId, info: userInfo.map { JSONValue(describing: $0) })
    }

    var engine: PusherMember {
        PusherMember(id: userId, info: (try? info?.text).map { Array($0.utf8) })
    }
}
