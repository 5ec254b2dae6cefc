import Testing
import Wire

/// The messages of docs/pusher-rules.md, U3, with all of their variants.
@Suite struct PusherPayloadTests {
    /// Reads a message.
    private func with<Result>(
        _ message: String, _ body: (PusherEnvelope) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        var reader = PusherEnvelopeReader()
        let bytes = Array(message.utf8)
        return try bytes.withUnsafeBufferPointer { bytes throws(RealtimeError) in
            try reader.read(UnsafeRawBufferPointer(bytes), body)
        }
    }

    /// Reads data, as an object and as a string that contains it.
    private func both<Result: Equatable>(
        _ json: String, _ body: (PusherData) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        let bare = try with("{\"event\":\"e\",\"data\":\(json)}") {
            envelope throws(RealtimeError) in
            try body(envelope.data)
        }
        let text = try JSONValue.string(json).text
        let inText = try with("{\"event\":\"e\",\"data\":\(text)}") {
            envelope throws(RealtimeError) in
            try body(envelope.data)
        }
        #expect(bare == inText)
        return bare
    }

    private func fails<Result>(_ json: String, _ body: (PusherData) throws(RealtimeError) -> Result)
    {
        #expect(throws: RealtimeError.self) {
            _ = try with("{\"event\":\"e\",\"data\":\(json)}") { envelope throws(RealtimeError) in
                try body(envelope.data)
            }
        }
    }

    private func handshake(_ data: PusherData) throws(RealtimeError) -> PusherHandshake {
        try PusherHandshake(data)
    }

    @Test(arguments: [
        ("120", Duration.seconds(120)), ("30.5", .milliseconds(30_500)), ("1e400", nil),
        ("0", nil), ("-1", nil), ("null", nil), ("\"30\"", nil), ("1e300", .seconds(86_400)),
    ]) func connectionEstablished(timeout: String, duration: Duration?) throws {
        let json = "{\"socket_id\":\"4711.90210\",\"activity_timeout\":\(timeout)}"
        let read = try both(json) { data throws(RealtimeError) in try handshake(data) }
        #expect(read.socketID == "4711.90210")
        #expect(read.activityTimeout == duration)
    }

    @Test func aHandshakeNeedsASocketID() throws {
        #expect(try both(#"{"socket_id":"1.2"}"#, handshake).activityTimeout == nil)
        let long = String(repeating: "1", count: 257)
        for json in [
            "{}", "[]", "null", "12", #"{"socket_id":12.5}"#, #"{"socket_id":""}"#,
            "{\"socket_id\":\"\(long)\"}",
        ] {
            fails(json, handshake)
        }
    }

    private func error(_ message: String) throws -> PusherErrorMessage {
        try with(message) { PusherErrorMessage($0) }
    }

    @Test func errors() throws {
        let unauthorized = PusherErrorMessage(code: 4009, message: "no")
        #expect(
            try error(#"{"event":"pusher:error","data":{"code":4009,"message":"no"}}"#)
                == unauthorized)
        #expect(
            try error(#"{"event":"pusher:error","data":"{\"code\":4009,\"message\":\"no\"}"}"#)
                == unauthorized)
        #expect(
            try error(#"{"event":"pusher:error","data":{"code":null,"message":"no"}}"#)
                == PusherErrorMessage(code: nil, message: "no"))
        #expect(
            try error(#"{"event":"pusher:error","channel":"c","data":{"code":4301,"message":"m"}}"#)
                == PusherErrorMessage(code: 4301, message: "m", channel: "c"))
        #expect(
            try error(#"{"event":"pusher:error","data":"plain words"}"#)
                == PusherErrorMessage(code: nil, message: "plain words"))
        #expect(
            try error(#"{"event":"pusher:error","data":[1]}"#)
                == PusherErrorMessage(code: nil, message: "[1]"))
        #expect(
            try error(#"{"event":"pusher:error"}"#) == PusherErrorMessage(code: nil, message: ""))
        #expect(
            try error(#"{"event":"pusher:error","data":{"code":"x","message":7}}"#)
                == PusherErrorMessage(code: nil, message: ""))
    }

    @Test func subscriptionErrors() throws {
        func read(_ data: String) throws -> [String?] {
            let error = try with(
                "{\"event\":\"pusher:subscription_error\",\"channel\":\"private-x\"\(data)}"
            ) { PusherSubscriptionError($0.data) }
            return [error.type, error.error, error.status.map { String($0) }]
        }
        #expect(
            try read(#","data":{"type":"AuthError","error":"text","status":401}"#)
                == ["AuthError", "text", "401"])
        #expect(
            try read(#","data":"{\"error\":\"text\",\"status\":4009}""#) == [nil, "text", "4009"])
        for data in ["", #","data":{}"#, #","data":null"#, #","data":"x""#, #","data":[]"#] {
            #expect(try read(data) == [nil, nil, nil])
        }
    }

    @Test func subscriptionCounts() throws {
        let read = { (data: PusherData) in PusherSubscriptionCount.read(data) }
        #expect(try both(#"{"subscription_count":12}"#, read) == 12)
        #expect(try both(#"{"subscription_count":0}"#, read) == 0)
        for json in [
            "{}", "null", "1", #"{"subscription_count":-1}"#,
            #"{"subscription_count":"1"}"#, #"{"subscription_count":1.5}"#,
        ] {
            #expect(try both(json, read) == nil)
        }
    }

    @Test func signedIn() throws {
        let read = { (data: PusherData) throws(RealtimeError) in try PusherSignedInUser(data) }
        let user = try both(#"{"user_data":"{\"id\":\"u-17\",\"x\":1}"}"#, read)
        #expect(user.id == "u-17" && user.userData == #"{"id":"u-17","x":1}"#)
        for json in [
            "{}", "null", #"{"user_data":"{}"}"#, #"{"user_data":"{\"id\":\"\"}"}"#,
            #"{"user_data":"{\"id\":7}"}"#, #"{"user_data":"x"}"#, #"{"user_data":{"id":"u"}}"#,
        ] {
            fails(json, read)
        }
    }

    @Test func watchlistEvents() throws {
        let json =
            #"{"events":[{"name":"online","user_ids":["u-3",4]},{"user_ids":["x"]},7,"#
            + #"{"name":"offline"}]}"#
        let events = try both(json) { data throws(RealtimeError) in
            try PusherWatchlistEvent.all(data)
        }
        #expect(events.map { $0.name } == ["online", "offline"])
        #expect(events.map { $0.userIDs } == [["u-3", "4"], []])
        fails("null") { data throws(RealtimeError) in try PusherWatchlistEvent.all(data) }
    }

    @Test func watchlistEventsWithoutTheWrapper() throws {
        func read(_ message: String) throws -> PusherWatchlistEvent? {
            try with(message) { PusherWatchlistEvent(bare: $0) }
        }
        let event = try read(#"{"event":"online","data":{"user_ids":["u-3"]}}"#)
        #expect(event?.name == "online" && event?.userIDs == ["u-3"])
        #expect(try read(#"{"event":"offline","data":"{\"user_ids\":[]}"}"#)?.userIDs == [])
        #expect(try read(#"{"event":"online","channel":"c","data":{"user_ids":["u"]}}"#) == nil)
        #expect(try read(#"{"event":"online","data":{}}"#) == nil)
        #expect(try read(#"{"event":"other","data":{"user_ids":["u"]}}"#) == nil)
    }

    @Test func eventNames() throws {
        for (name, meaning) in [
            ("pusher:connection_established", PusherEventName.connectionEstablished),
            ("pusher:error", .error), ("pusher:ping", .ping), ("pusher:pong", .pong),
            ("pusher:subscription_error", .subscriptionError),
            ("pusher_internal:subscription_error", .subscriptionError),
            ("pusher_internal:subscription_succeeded", .subscriptionSucceeded),
            ("pusher_internal:subscription_count", .subscriptionCount),
            ("pusher_internal:member_added", .memberAdded),
            ("pusher_internal:member_removed", .memberRemoved),
            ("pusher_internal:watchlist_events", .watchlistEvents),
            ("pusher:cache_miss", .cacheMiss), ("pusher:signin_success", .signInSuccess),
            ("pusher:", .otherProtocol), ("pusher:pang", .otherProtocol),
            ("pusher_internal:", .otherInternal), ("pusher_internal:x", .otherInternal),
            ("", .application), ("pusher", .application), ("pusher-x", .application),
            ("Pusher:ping", .application), ("new-price", .application),
        ] {
            #expect(Array(name.utf8).withUnsafeBytes { PusherEventName($0) } == meaning, "\(name)")
        }
    }
}
