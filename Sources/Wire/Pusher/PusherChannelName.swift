package enum PusherChannelKind: Int32, Sendable, CaseIterable {
    case `public`, `private`, encrypted, presence
    /// Events for the signed-in user. Only the library subscribes to it.
    case serverToUser
}

/// A channel's name, which determines its kind (docs/pusher-rules.md, U7).
package struct PusherChannelName: Sendable, Equatable {
    package let text: String
    package let kind: PusherChannelKind
    /// Whether the server sends the last event after each subscription.
    package let isCache: Bool

    /// The longest name that Pusher accepts. Other servers accept longer ones.
    package static let longest = 164
    /// The longest name of a user's channel that is recognized after the user was signed out.
    private static let longestOfUser = 256

    /// - Parameter maximumLength: 0 for no limit.
    /// - Throws: `.invalidArgument` if Pusher would refuse the name.
    package init(_ text: String, maximumLength: Int = longest) throws(RealtimeError) {
        guard !text.isEmpty else {
            throw RealtimeError(.invalidArgument, "a channel's name must not be empty")
        }
        guard maximumLength == 0 || text.utf8.count <= maximumLength else {
            throw RealtimeError(
                .invalidArgument,
                "the channel name \(text.quoted(upTo: 40)) has \(text.utf8.count) characters; at "
                    + "most \(maximumLength) are allowed")
        }
        guard text.hasBytes(only: PusherChannelName.allows) else {
            throw RealtimeError(
                .invalidArgument,
                "the channel name \(text.quoted()) has a character other than A-Z, a-z, 0-9 and "
                    + "_-=@,.;")
        }
        let (kind, prefix) = PusherChannelName.kind(of: text)
        let rest = String(Substring(text.utf8.dropFirst(prefix)))
        self.init(text: text, kind: kind, isCache: rest.beginsWithBytes(of: "cache-"))
    }

    private init(text: String, kind: PusherChannelKind, isCache: Bool) {
        self.text = text
        self.kind = kind
        self.isCache = isCache
    }

    /// Before the user's id, in the name of the user's channel.
    private static let userPrefix = "#server-to-user-"

    /// The channel of a signed-in user.
    package static func serverToUser(_ userID: String) -> PusherChannelName {
        PusherChannelName(text: userPrefix + userID, kind: .serverToUser, isCache: false)
    }

    /// Whether the program or the library may have subscribed a channel of this name.
    package static func isPossible(_ text: String, maximumLength: Int) -> Bool {
        if text.beginsWithBytes(of: userPrefix) { return text.utf8.count <= longestOfUser }
        return (try? PusherChannelName(text, maximumLength: maximumLength)) != nil
    }

    package var needsAuthorization: Bool {
        switch kind {
        case .private, .encrypted, .presence: true
        case .public, .serverToUser: false
        }
    }

    /// Whether its subscribers may send events to one another.
    package var allowsClientEvents: Bool { kind == .private || kind == .presence }

    /// The kind, and the length of the prefix that shows it.
    private static func kind(of text: String) -> (PusherChannelKind, Int) {
        for (prefix, kind) in [
            ("private-encrypted-", PusherChannelKind.encrypted), ("private-", .private),
            ("presence-", .presence),
        ] where text.beginsWithBytes(of: prefix) {
            return (kind, prefix.utf8.count)
        }
        return (.public, 0)
    }

    private static func allows(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"),
            UInt8(ascii: "="), UInt8(ascii: "@"), UInt8(ascii: ","), UInt8(ascii: "."),
            UInt8(ascii: ";"):
            true
        default: false
        }
    }
}
