import Testing
import Wire

/// docs/pusher-rules.md, U1 and U7.
@Suite struct PusherAddressTests {
    private let query = "?client=linux-librealtime&version=\(LibraryVersion.text)&protocol=7"

    private func text(
        key: String = "KEY", _ change: (inout PusherAddress) -> Void
    ) throws(RealtimeError) -> String {
        var address = PusherAddress(key: key)
        change(&address)
        let url = try address.url
        let text = try address.text
        #expect(url.isSecure == address.isSecure)
        #expect(text.hasSuffix(query))
        return String(text.dropLast(query.count))
    }

    @Test func hosts() throws {
        #expect(try text { _ in } == "wss://ws.pusherapp.com:443/app/KEY")
        #expect(try text { $0.isSecure = false } == "ws://ws.pusherapp.com:80/app/KEY")
        #expect(try text { $0.cluster = "eu" } == "wss://ws-eu.pusher.com:443/app/KEY")
        #expect(
            try text {
                $0.host = "localhost"
                $0.port = 6001
            } == "wss://localhost:6001/app/KEY")
        #expect(try text { $0.host = "::1" } == "wss://[::1]:443/app/KEY")
        #expect(try text { $0.host = "[::1]" } == "wss://[::1]:443/app/KEY")
        #expect(try text(key: "a/b c") { _ in } == "wss://ws.pusherapp.com:443/app/a%2Fb%20c")
    }

    @Test(arguments: ["ws", "/ws", "ws/", "//ws//"]) func aPathHasOneSlash(path: String) throws {
        #expect(try text { $0.path = path } == "wss://ws.pusherapp.com:443/ws/app/KEY")
    }

    @Test(arguments: ["", "/", "//"]) func anEmptyPath(path: String) throws {
        #expect(try text { $0.path = path } == "wss://ws.pusherapp.com:443/app/KEY")
    }

    @Test func whatAURLMustNotContain() {
        for change in [
            { $0.host = "ws://127.0.0.1" }, { $0.host = "host/path" }, { $0.host = "" },
            { $0.host = "host:80" }, { $0.host = "user@host" }, { $0.host = "a b" },
            { $0.cluster = "" }, { $0.cluster = "eu.evil.example/" },
            {
                $0.host = "a"
                $0.cluster = "eu"
            }, { $0.path = "a?b" }, { $0.path = "a#b" }, { $0.key = "" },
        ] as [(inout PusherAddress) -> Void] {
            #expect { try text(change) } throws: { error in
                (error as? RealtimeError)?.code == .invalidArgument
            }
        }
    }

    @Test(arguments: [
        ("chat", PusherChannelKind.public, false), ("private-x", .private, false),
        ("private-encrypted-x", .encrypted, false), ("presence-x", .presence, false),
        ("cache-x", .public, true), ("private-cache-x", .private, true),
        ("presence-cache-x", .presence, true), ("private-encrypted-cache-x", .encrypted, true),
        ("private", .public, false), ("privateer-x", .public, false), ("presence", .public, false),
        ("private-encrypted", .private, false), ("private-", .private, false),
        ("Private-x", .public, false), ("x-cache-y", .public, false),
        ("private-presence-x", .private, false),
    ]) func kinds(name: String, kind: PusherChannelKind, isCache: Bool) throws {
        let channel = try PusherChannelName(name)
        #expect(channel.text == name && channel.kind == kind && channel.isCache == isCache)
        #expect(channel.needsAuthorization == (kind != .public))
        #expect(channel.allowsClientEvents == (kind == .private || kind == .presence))
    }

    @Test(arguments: ["", "#server-to-user-1", "a b", "a/b", "ü", "a:b", "a\n", "a\0"])
    func otherNames(name: String) {
        #expect { try PusherChannelName(name) } throws: { error in
            (error as? RealtimeError)?.code == .invalidArgument
        }
    }

    @Test func theLengthOfAName() throws {
        let name = String(repeating: "a", count: 165)
        _ = try PusherChannelName(String(name.dropLast()))
        #expect(throws: RealtimeError.self) { try PusherChannelName(name) }
        _ = try PusherChannelName(name, maximumLength: 200)
        _ = try PusherChannelName(String(repeating: "a", count: 5000), maximumLength: 0)
    }

    @Test func theChannelOfAUser() {
        let channel = PusherChannelName.serverToUser("u 17")
        #expect(channel.text == "#server-to-user-u 17" && channel.kind == .serverToUser)
        #expect(!channel.needsAuthorization)
    }
}
