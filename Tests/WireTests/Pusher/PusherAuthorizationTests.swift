import Testing
import Wire

/// Answers to authorization requests (docs/pusher-rules.md, U8).
@Suite struct PusherAuthorizationTests {
    private let secret = "Kac8DG5/eTTzqfIZZ9HXAmnm6v4eMLUPYDHQdMHwBl4="

    private func answer(
        _ json: String, _ kind: PusherChannelKind = .private
    ) throws(RealtimeError) -> PusherAuthorizationAnswer {
        let bytes = Array(json.utf8)
        return try bytes.withUnsafeBufferPointer { bytes throws(RealtimeError) in
            try PusherAuthorizationAnswer(json: UnsafeRawBufferPointer(bytes), for: kind)
        }
    }

    private func fails(_ json: String, _ kind: PusherChannelKind = .private) {
        #expect { try answer(json, kind) } throws: { error in
            let error = error as? RealtimeError
            #expect(error?.message.contains("s3cr3t") == false)
            return error?.code == .auth
        }
    }

    @Test func anAnswer() throws {
        let json =
            #"{"auth":"KEY:HEX","channel_data":"{ \"user_id\":\"u-17\" }","#
            + "\"shared_secret\":\"\(secret)\"}"
        let encrypted = try answer(json, .encrypted)
        #expect(encrypted.auth == "KEY:HEX")
        #expect(encrypted.channelData == #"{ "user_id":"u-17" }"#)
        #expect(encrypted.sharedSecret != nil)
        #expect(try answer(json).sharedSecret == nil)
        let plain = try answer(#"{"auth":"a","channel_data":null,"shared_secret":7,"more":1}"#)
        #expect(plain.auth == "a" && plain.channelData == nil)
    }

    @Test(arguments: [
        "", "s3cr3t", "[]", "\"s3cr3t\"", "{}", #"{"auth":7}"#, #"{"auth":""}"#, #"{"auth":null}"#,
        #"{"auth":"s3cr3t""#, #"{"auth":"s3cr3t","channel_data":{"user_id":"s3cr3t"}}"#,
    ]) func otherAnswers(json: String) { fails(json) }

    @Test func anEncryptedChannelNeedsASecret() {
        fails(#"{"auth":"s3cr3t"}"#, .encrypted)
        fails(#"{"auth":"a","shared_secret":null}"#, .encrypted)
        fails(#"{"auth":"a","shared_secret":"s3cr3t"}"#, .encrypted)
        fails(#"{"auth":"a","shared_secret":["s3cr3t"]}"#, .encrypted)
    }

    @Test func answersAreNotPrinted() throws {
        let answer = try answer(#"{"auth":"s3cr3t","channel_data":"s3cr3t"}"#)
        let user = PusherUserAnswer(auth: "s3cr3t", userData: "s3cr3t")
        #expect("\(answer) \(user)" == "(authorization) (authorization)")
    }

    @Test func aBatch() throws {
        let json = """
            {"private-a":{"auth":"1"},
             "private-b":{"status":200,"data":{"auth":"2","channel_data":"x"}},
             "private-c":{"status":403,"data":{"auth":"s3cr3t"}},
             "private-d":{"status":201,"data":"s3cr3t"},
             "private-e":7,
             "private-encrypted-f":{"auth":"6","shared_secret":"\(secret)"},
             "private-encrypted-g":{"auth":"7"},
             "private-h":{"auth":"8","status":"ok"}}
            """
        var names: [PusherChannelName] = []
        for name in [
            "private-a", "private-b", "private-c", "private-d", "private-e", "private-x",
            "private-encrypted-f", "private-encrypted-g", "private-h",
        ] {
            names.append(try PusherChannelName(name))
        }
        let channels = names
        let bytes = Array(json.utf8)
        let results = try bytes.withUnsafeBytes { body in
            try PusherAuthorizationAnswer.batch(json: body, for: channels)
        }
        let shown = results.map { result in
            switch result {
            case .success(let answer): answer.auth
            case .failure(let error): error.code == .auth ? "-" : error.message
            }
        }
        #expect(shown == ["1", "2", "-", "-", "-", "-", "6", "-", "8"])
        for case .failure(let error) in results { #expect(!error.message.contains("s3cr3t")) }
    }

    @Test func aBatchTellsTheStatusOfAChannel() throws {
        let signature = String(repeating: "ab", count: 32)
        let json = """
            {"private-a":{"status":403,"data":"not you, \(signature)"},
             "private-b":{"status":500,"data":{"auth":"s3cr3t"}},
             "private-c":{"status":99},"private-d":{"status":-9223372036854775808}}
            """
        var channels: [PusherChannelName] = []
        for name in ["private-a", "private-b", "private-c", "private-d"] {
            channels.append(try PusherChannelName(name))
        }
        let (bytes, names) = (Array(json.utf8), channels)
        let results = try bytes.withUnsafeBytes { body in
            try PusherAuthorizationAnswer.batch(json: body, for: names)
        }
        let responses = results.map { result -> HTTPResponse? in
            if case .failure(let error) = result { error.response } else { nil }
        }
        #expect(responses.map { $0?.status } == [403, 500, nil, nil])
        #expect(responses[0]?.body == Array("not you, …".utf8))
        #expect(responses[1]?.body.isEmpty == true)
    }

    @Test(arguments: ["", "[]", "x"]) func aBatchIsAnObject(json: String) throws {
        let channels = [try PusherChannelName("private-a")]
        let bytes = Array(json.utf8)
        #expect(throws: RealtimeError.self) {
            try bytes.withUnsafeBytes { body in
                _ = try PusherAuthorizationAnswer.batch(json: body, for: channels)
            }
        }
    }

    @Test func aUser() throws {
        func user(_ json: String) throws -> PusherUserAnswer {
            let bytes = Array(json.utf8)
            return try bytes.withUnsafeBytes { try PusherUserAnswer(json: $0) }
        }
        let answer = try user(#"{"auth":"KEY:HEX","user_data":"{\"id\":\"u-17\"}"}"#)
        #expect(answer.auth == "KEY:HEX" && answer.userData == #"{"id":"u-17"}"#)
        for json in ["", "{}", #"{"auth":"a"}"#, #"{"auth":"a","user_data":{"id":"u"}}"#] {
            #expect(throws: RealtimeError.self) { try user(json) }
        }
    }
}
