import Realtime
import Testing

/// A configuration as a dictionary can say everything that its properties can.
@Suite struct SpreadbotDictionaryTests {
    /// For each key, a value that is not the default.
    private static let all: [String: any Sendable] = [
        "baseURL": "http://h", "authURL": "https://h/t", "accessToken": "a", "refreshToken": "r",
        "base64Credentials": "Yzpz", "log": true, "transports": ["poll", "sse"],
        "transportURLs": ["webSocket": "wss://w"], "sendURL": "http://s", "lastEventID": "7",
        "outbox": "/tmp/outbox", "maxBufferedMessages": 1, "maxBufferedBytes": 2,
        "executor": "loop", "tokenQueryParameter": "t", "idQueryParameter": "i",
        "headers": ["A": "1", "B": "2"], "network": network, "reachability": reachability,
        "maxRedirects": 3, "allowInsecureRedirects": true, "safeHeaders": ["X-A"],
        "redirectOrigins": ["https://b.test"],
        "compression": false, "http2": false, "connectTimeout": 4, "maxReconnects": 5,
        "maxRounds": 6, "maxDelay": 7.5, "stableTime": Duration.seconds(8), "upgradeInterval": 0,
        "maxUpgradeInterval": 9, "answerTimeout": Duration.seconds(10), "pingInterval": 0.0,
        "pollInterval": 11, "pollTimeout": 12, "queueCapacity": 13, "queueOverflow": "dropOldest",
        "maxMessageBytes": 14, "backoff": Backoff(),
    ]
    private static let network = {
        var network = Network()
        network.caFile = "/ca"
        return network
    }()
    private static let reachability = try? Reachability(.always)

    private func properties(_ configuration: Spreadbot.Configuration) -> [String: String] {
        let children = Mirror(reflecting: configuration).children
        return Dictionary(
            uniqueKeysWithValues: children.map { (name($0.label ?? ""), "\($0.value)") })
    }

    /// A property that may hold a secret is stored with another name.
    private func name(_ label: String) -> String {
        guard label.hasPrefix("hidden") else { return label }
        let name = label.dropFirst("hidden".count)
        return name.prefix(1).lowercased() + name.dropFirst()
    }

    @Test func everyPropertyHasAKey() throws {
        let before = properties(Spreadbot.Configuration(baseURL: "http://x"))
        #expect(before.keys.sorted() == SpreadbotDictionaryTests.all.keys.sorted())
        let after = properties(try Spreadbot.Configuration(SpreadbotDictionaryTests.all))
        for (name, value) in after { #expect(value != before[name], "\(name) was not set") }
    }

    @Test func valuesMayHaveTheirOwnTypes() throws {
        let counter = Spreadbot.Executor.actor(MainActor.shared)
        let configuration = try Spreadbot.Configuration([
            "baseURL": "http://h", "transports": [Spreadbot.Transport.poll],
            "transportURLs": [Spreadbot.Transport.sse: "http://s"], "executor": counter,
            "headers": [(name: "A", value: "1"), (name: "A", value: "2")],
            "queueOverflow": REST.Overflow.dropOldest, "connectTimeout": 0, "maxDelay": 0.5,
        ])
        #expect(configuration.transports == [.poll])
        #expect(configuration.transportURLs == [.sse: "http://s"])
        #expect(configuration.headers.map(\.value) == ["1", "2"])
        #expect(configuration.connectTimeout == nil && configuration.maxDelay == .seconds(0.5))
    }

    /// The error names the key and what is accepted, and does not show the value.
    @Test(arguments: all.keys) func otherTypesAreRefused(key: String) throws {
        struct Other: Sendable { let secret = "s3cret" }
        var dictionary: [String: any Sendable] = ["baseURL": "http://h"]
        dictionary[key] = Other()
        let error = #expect(throws: RealtimeError.self) {
            try Spreadbot.Configuration(dictionary)
        }
        let message = try #require(error?.message)
        #expect(error?.code == .invalidArgument)
        #expect(message.contains("\"\(key)\" has a value of the type Other"), "\(message)")
        #expect(message.hasSuffix("is expected") && !message.contains("s3cret"), "\(message)")
    }

    @Test(
        arguments: [
            ("maxDelay", -1), ("maxDelay", -0.5), ("maxDelay", Double.nan), ("pollTimeout", "5 s"),
            ("transports", ["websockets"]), ("transportURLs", ["http": "x"]),
            ("executor", "main actor"),
            ("queueOverflow", "drop"),
        ] as [(String, any Sendable)])
    func otherValuesAreRefused(key: String, value: any Sendable) {
        let error = #expect(throws: RealtimeError.self) {
            try Spreadbot.Configuration(["baseURL": "http://h", key: value])
        }
        #expect(error?.message.contains("\"\(key)\"") == true)
    }

    @Test func unknownKeysAreRefused() {
        let unknown = #expect(throws: RealtimeError.self) {
            try Spreadbot.Configuration(["baseURL": "http://h", "token": "x"])
        }
        let message = unknown?.message ?? ""
        #expect(message.contains("\"token\""))
        for key in SpreadbotDictionaryTests.all.keys { #expect(message.contains(key)) }
        let empty = #expect(throws: RealtimeError.self) { try Spreadbot.Configuration([:]) }
        #expect(empty?.message == "the configuration needs a \"baseURL\"")
        let spreadbot = Spreadbot(config: ["baseURL": "http://h", "token": "x"])
        #expect(spreadbot.configurationError == unknown)
    }
}
