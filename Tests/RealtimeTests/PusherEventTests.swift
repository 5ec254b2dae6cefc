@testable import Realtime
import Synchronization
import Testing

/// What PusherSwift's tests of incoming events and of the event factory check.
@Suite(.timeLimit(.minutes(5))) struct PusherEventTests {
    /// What the handlers of a channel `c` get when a server sends these messages.
    private struct Delivered {
        let events = Notes()
        let data = Notes()
        let globals = Notes()

        init(_ messages: [String], parsed: Bool = true) async throws {
            let app = try await PusherApp()
            let pusher = app.pusher { $0.attemptToReturnJSONObject = parsed }
            let (events, data, globals) = (events, data, globals)
            let channel = pusher.subscribe("c")
            pusher.bind { (message: Any?) in globals.add(Delivered.describe(message)) }
            channel.bind(eventName: "e") { (event: PusherEvent) in
                events.add(
                    [event.data, event.userId].map { $0 ?? "none" }.joined(separator: " | "))
            }
            channel.bind(
                eventName: "e", callback: { (value: Any?) in data.add(Delivered.describe(value)) })
            try await pusher.connected()
            try await channel.subscribed()
            let before = globals.all.count
            for message in messages { try await app.control("send", ["text": .string(message)]) }
            await globals.wait(count: before + messages.count)
            await data.wait(count: messages.count)
        }

        static func describe(_ value: Any?) -> String {
            switch value {
            case nil: "nothing"
            case let object as [String: Any]:
                "{"
                    + object.sorted { $0.key < $1.key }
                    .map { "\($0.key): \(describe($0.value))" }.joined(separator: ", ") + "}"
            case let array as [Any]: "[\(array.map { describe($0) }.joined(separator: ", "))]"
            case let value?: "\(type(of: value)) \(value)"
            }
        }
    }

    private func message(_ data: String) -> String {
        #"{"event":"e","channel":"c","data":\#(data)}"#
    }

    /// Each form of `data` that servers send, with its text and its value.
    @Test func dataIsParsed() async throws {
        let table = [
            (
                #""{\"a\":[1,2.5,true,null,\"x\"]}""#, #"{"a":[1,2.5,true,null,"x"]}"#,
                "{a: [Int 1, Double 2.5, Bool true, JSONValue null, String x]}"
            ),
            (#""12""#, "12", "Int 12"),
            (#""\"hi\"""#, #""hi""#, "String hi"),
            (#""null""#, "null", "nothing"),
            (#""hello""#, "hello", "String hello"),
            (#""""#, "", "String "),
            (#"{ "b" : 1 }"#, #"{"b":1}"#, "{b: Int 1}"),
            ("[1, 2]", "[1,2]", "[Int 1, Int 2]"),
            ("9007199254740993", "9007199254740993", "Int 9007199254740993"),
            ("true", "true", "Bool true"),
            ("null", "none", "nothing"),
        ]
        let delivered = try await Delivered(table.map { message($0.0) })
        #expect(delivered.events.all == table.map { "\($0.1) | none" })
        #expect(delivered.data.all == table.map(\.2))
    }

    @Test func dataIsTextWithoutParsing() async throws {
        let delivered = try await Delivered(
            [message(#""{\"a\":1}""#), message("[1]"), message("null")], parsed: false)
        #expect(delivered.data.all == [#"String {"a":1}"#, "String [1]", "nothing"])
    }

    @Test func callbacksForAllEventsGetTheMessage() async throws {
        let delivered = try await Delivered([message(#""{\"a\":1}""#)])
        #expect(
            delivered.globals.all.last
                == #"{channel: String c, data: String {"a":1}, event: String e}"#)
    }

    @Test func everyMemberOfTheMessageCanBeRead() async throws {
        let text =
            #"{"event":"e","channel":"c","user_id":"u-3","data":"x","extra":{"n":[1]},"#
            + #""text":"t","number":7,"yes":true,"list":[1,2],"nil":null}"#
        let app = try await PusherApp()
        let pusher = app.pusher()
        let channel = pusher.subscribe("c")
        let events = channel.events("e")
        try await pusher.connected()
        try await channel.subscribed()
        try await app.control("send", ["text": .string(text)])
        for await event in events {
            #expect(event.eventName == "e" && event.channelName == "c")
            #expect(event.data == "x" && event.json == "x" && event.userId == "u-3")
            #expect(event.property(withKey: "event") as? String == "e")
            #expect(
                (event.property(withKey: "extra") as? [String: Any])?["n"] as? [Int] == [1])
            #expect(event.property("extra") == ["n": [1]])
            #expect(event.property(withKey: "channel") as? String == "c")
            #expect(event.property(withKey: "data") as? String == "x")
            #expect(event.property(withKey: "user_id") as? String == "u-3")
            #expect(event.property(withKey: "text") as? String == "t")
            #expect(event.property(withKey: "number") as? Int == 7)
            #expect(event.property(withKey: "yes") as? Bool == true)
            #expect(event.property(withKey: "list") as? [Int] == [1, 2])
            #expect(event.property(withKey: "nil") == nil && event.property("nil") == .some(.null))
            #expect(event.property(withKey: "missing") == nil)
            break
        }
    }

    /// They are skipped, and the connection stays.
    @Test func malformedMessagesAreSkipped() async throws {
        let delivered = try await Delivered([message("1")])
        #expect(delivered.data.all == ["Int 1"])
        let app = try await PusherApp()
        let pusher = app.pusher()
        let channel = pusher.subscribe("c")
        let events = pusher.events()
        try await pusher.connected()
        try await channel.subscribed()
        for text in ["nonsense", "[1]", #"{"channel":"c"}"#, #"{"event":7}"#] {
            try await app.control("send", ["text": .string(text)])
        }
        // Of a channel that is not registered.
        try await app.control("send", ["text": #"{"event":"x","channel":"unknown"}"#])
        try await app.publish("c", "last")
        var names: [String] = []
        for await event in events {
            names.append(event.eventName)
            if event.eventName == "last" { break }
        }
        #expect(names == ["pusher:subscription_succeeded", "last"])
        #expect(pusher.connection.connectionState == .connected)
    }

    @Test func swiftValuesBecomeJSON() {
        let values: [(Any?, JSONValue?)] = [
            (nil, .null), (Optional<Int>.none as Any, .null), (Optional(1) as Any, 1),
            (true, true), (UInt8(7), 7), (UInt64.max, .number(Double(UInt64.max))),
            (Float(0.5), 0.5), ("x"[...], "x"), ([1, "a", nil] as [Any?], [1, "a", nil]),
            (["a": [1: 2].count, "b": ["c"]] as [String: Any], ["a": 1, "b": ["c"]]),
            (JSONValue.array([1]), [1]), (Double.nan, nil), (Notes(), nil), ([Notes()], nil),
            (["a": Notes()], nil),
        ]
        for (value, json) in values { #expect(JSONValue(any: value) == json, "\(value as Any)") }
        let member = PusherPresenceChannelMember(userId: "1", userInfo: ["a": 1])
        #expect(member.info == ["a": 1] && (member.userInfo as? [String: Int]) == ["a": 1])
        #expect(PusherPresenceChannelMember(userId: "1").userInfo == nil)
    }

    @Test func theHandlersOfAnEventShareOneCopy() async throws {
        let app = try await PusherApp()
        let notes = Notes()
        // Kept, so that no memory is used for two of them.
        let events = Mutex<[PusherEvent]>([])
        let keep: @Sendable (PusherEvent) -> Void = { event in
            events.withLock { $0.append(event) }
            notes.add(event.eventName)
        }
        let pusher = app.pusher()
        let channel = pusher.subscribe("channel")
        pusher.bind(eventName: "e", eventCallback: keep)
        channel.bind(eventName: "e", eventCallback: keep)
        let iterated = channel.events("e")
        try await pusher.connected()
        try await channel.subscribed()
        let text = "a text that is too long to be stored in a string itself"
        for _ in 0..<2 { try await app.publish("channel", "e", .string(text)) }
        await notes.wait(count: 4)
        for await event in iterated {
            keep(event)
            if notes.all.count == 6 { break }
        }
        let places = events.withLock { events in
            events.map { event in
                var data = event.data ?? ""
                return data.withUTF8 { UInt(bitPattern: $0.baseAddress) }
            }
        }
        #expect(places.count == 6 && Set(places).count == 2)
    }
}
