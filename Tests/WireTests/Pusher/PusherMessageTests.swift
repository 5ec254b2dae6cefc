import Testing
import Wire

/// The messages of docs/pusher-rules.md, U3, and the bodies of its requests.
@Suite struct PusherMessageTests {
    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func subscribe() {
        #expect(
            text(PusherMessage.subscribe("chat", nil))
                == #"{"event":"pusher:subscribe","data":{"channel":"chat"}}"#)
        let answer = PusherAuthorizationAnswer(
            auth: "KEY:HEX", channelData: nil, sharedSecret: nil)
        #expect(
            text(PusherMessage.subscribe("private-orders", answer))
                == #"{"event":"pusher:subscribe","data":{"channel":"private-orders","#
                + #""auth":"KEY:HEX"}}"#)
        let presence = PusherAuthorizationAnswer(
            auth: "KEY:HEX", channelData: #"{"user_id":"u-17"}"#, sharedSecret: nil)
        #expect(
            text(PusherMessage.subscribe("presence-lobby", presence))
                == #"{"event":"pusher:subscribe","data":{"channel":"presence-lobby","#
                + #""auth":"KEY:HEX","channel_data":"{\"user_id\":\"u-17\"}"}}"#)
    }

    @Test func theOthers() throws {
        #expect(
            text(PusherMessage.unsubscribe("chat"))
                == #"{"event":"pusher:unsubscribe","data":{"channel":"chat"}}"#)
        #expect(text(PusherMessage.ping) == #"{"event":"pusher:ping","data":{}}"#)
        #expect(text(PusherMessage.pong) == #"{"event":"pusher:pong","data":{}}"#)
        let user = PusherUserAnswer(auth: "KEY:HEX", userData: #"{"id":"u-17"}"#)
        #expect(
            text(PusherMessage.signIn(user))
                == #"{"event":"pusher:signin","data":{"auth":"KEY:HEX","#
                + #""user_data":"{\"id\":\"u-17\"}"}}"#)
    }

    @Test func clientEvents() throws {
        let data = try JSONText(checking: #"{"on":true}"#)
        #expect(
            text(PusherMessage.clientEvent("client-typing", channel: "private-orders", data: data))
                == #"{"event":"client-typing","channel":"private-orders","data":{"on":true}}"#)
        #expect(
            text(PusherMessage.clientEvent("client-\"", channel: "presence-x", data: nil))
                == #"{"event":"client-\"","channel":"presence-x"}"#)
        try PusherEventName.checkClientEvent("client-x")
        for name in ["", "client", "Client-x", "x-client-"] {
            #expect { try PusherEventName.checkClientEvent(name) } throws: { error in
                (error as? RealtimeError)?.code == .invalidArgument
            }
        }
    }

    @Test func jsonTextsAreChecked() throws {
        #expect(text(try JSONText(checking: " [1, 2.0] ").bytes) == "[1, 2.0]")
        #expect(text(try JSONText(["a": 1]).bytes) == #"{"a":1}"#)
        for wrong in ["", "{", "a", "1 2", "\"\u{1}\""] {
            #expect { try JSONText(checking: wrong) } throws: { error in
                (error as? RealtimeError)?.code == .invalidArgument
            }
        }
    }

    @Test func forms() {
        #expect(
            PusherForm.channel("private-orders", socketID: "4711.90210")
                == "socket_id=4711.90210&channel_name=private-orders")
        #expect(
            PusherForm.channel("presence-a@b=c,d;e", socketID: "1.2", parameters: [("x y", "&ü")])
                == "socket_id=1.2&channel_name=presence-a%40b%3Dc%2Cd%3Be&x%20y=%26%C3%BC")
        #expect(
            PusherForm.channels(["a", "b@"], socketID: "1.2", parameters: [("x", "y")])
                == "socket_id=1.2&channel_name%5B0%5D=a&channel_name%5B1%5D=b%40&x=y")
        #expect(PusherForm.user(socketID: "1.2") == "socket_id=1.2")
    }

    @Test func pushInterests() throws {
        let base = "https://push.example/v1"
        func check(
            _ request: PushInterestsRequest, _ line: String, _ body: String,
            sourceLocation: SourceLocation = #_sourceLocation
        ) {
            #expect("\(request.method) \(request.url)" == line, sourceLocation: sourceLocation)
            #expect(text(request.body) == body, sourceLocation: sourceLocation)
        }
        check(
            .register(token: [0, 0xAB, 0xFF], platform: "apns", key: "KEY", baseURL: base),
            "POST https://push.example/v1/clients",
            #"{"app_key":"KEY","platform_type":"apns","token":"00abff"}"#)
        check(
            .subscribe("a b/ü", clientID: "c-1", key: "KEY", baseURL: base + "/"),
            "POST https://push.example/v1/clients/c-1/interests/a%20b%2F%C3%BC",
            #"{"app_key":"KEY"}"#)
        check(
            .unsubscribe("news", clientID: "c-1", key: "KEY", baseURL: base),
            "DELETE https://push.example/v1/clients/c-1/interests/news", #"{"app_key":"KEY"}"#)
        check(
            .setSubscriptions(["a", "\"b\""], clientID: "c-1", key: "KEY", baseURL: base),
            "PUT https://push.example/v1/clients/c-1/interests/",
            #"{"app_key":"KEY","interests":["a","\"b\""]}"#)
    }

    @Test func theReplyToARegistration() throws {
        func id(_ json: String) throws -> String {
            let bytes = Array(json.utf8)
            return try bytes.withUnsafeBytes { try PushInterestsRequest.clientID(inReply: $0) }
        }
        #expect(try id(#"{"id":"c-1","platform_type":"apns"}"#) == "c-1")
        for json in ["", "[]", "{}", #"{"id":7}"#, #"{"id":""}"#] {
            #expect(throws: RealtimeError.self) { try id(json) }
        }
    }
}
