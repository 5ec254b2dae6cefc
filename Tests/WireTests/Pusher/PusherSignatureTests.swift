import Testing
import Wire

/// The vectors of docs/pusher-rules.md, U8.
@Suite struct PusherSignatureTests {
    private let key = "9f1c2ab34d5e6f708192"
    private let secret = SecretBytes("5ecret-Key-0f-example")
    private let socketID = "4711.90210"

    @Test func aPrivateChannel() throws {
        let auth = try PusherSignature.channel(
            "private-orders", channelData: nil, socketID: socketID, key: key, secret: secret)
        let code = "ecc7347d9e661f62628f2ce4d9ba8f656c6d6a413e0880307c025872e92f1898"
        #expect(auth == "\(key):\(code)")
    }

    @Test(arguments: [
        (
            #"{"user_id":"u-17","user_info":{"name":"Zoë"}}"#,
            "0906a6d5c9a5175fde2748e0dcf762b699d79e11865dfd1f97eb43389f88d1e5"
        ),
        (
            #"{"user_id":"u-17"}"#,
            "03dfd270ac7fc4fbd95bbbcb9973458588e335e9c8aebdbcc4e77268122ee219"
        ),
    ]) func aPresenceChannel(data: String, code: String) throws {
        let auth = try PusherSignature.channel(
            "presence-lobby", channelData: data, socketID: socketID, key: key, secret: secret)
        #expect(auth == "\(key):\(code)")
    }

    @Test func aUser() throws {
        let auth = try PusherSignature.user(
            #"{"id":"u-17","watchlist":["u-3","u-9"]}"#, socketID: socketID, key: key,
            secret: secret)
        let code = "ea9a53f41f3d1b6a980c073d568fdd6556c3755920630f5b85ff169e8c512d77"
        #expect(auth == "\(key):\(code)")
    }

    @Test func onlyTheCodeIsInLowerCase() throws {
        let auth = try PusherSignature.channel(
            "private-x", channelData: nil, socketID: "1.2", key: "ABC", secret: secret)
        #expect(auth.hasPrefix("ABC:"))
    }

    /// As Python's `hmac` computes them.
    @Test(arguments: [
        ("", "", "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"),
        (
            "", "4711.90210:private-orders",
            "68a2f05c198cf8ab5a8e8cb48a25d6c79379d9f578239f5a1f15640a9aa6b971"
        ),
        (
            "5ecret-Key-0f-example", "",
            "6d7797465ab1e362c98102426412f5cae02b3275a6467cb9ba8b877e2489592d"
        ),
    ]) func anEmptySecretOrMessage(secret: String, message: String, code: String) throws {
        #expect(try PusherSignature.hex(message, SecretBytes(secret)) == code)
    }

    @Test func channelDataOfAUser() throws {
        func data(_ info: String?) throws -> String {
            let info = try info.map { try JSONText(checking: $0) }
            return PusherSignature.channelData(userID: "u\"17", userInfo: info)
        }
        #expect(try data(nil) == #"{"user_id":"u\"17"}"#)
        let whole = #"{"user_id":"u\"17","user_info":{"name": "Zoë"}}"#
        #expect(try data(#" {"name": "Zoë"} "#) == whole)
        #expect(PusherSignature.userID(inChannelData: try data("1")) == "u\"17")
        #expect(PusherSignature.userID(inChannelData: #"{"user_id":17}"#) == "17")
        #expect(PusherSignature.userID(inChannelData: "{}") == nil)
        #expect(PusherSignature.userID(inChannelData: "x") == nil)
    }

    @Test func aSecretIsNotPrinted() throws {
        let shown = "\(secret) \(String(reflecting: secret)) \([secret])"
        #expect(!shown.contains("5ecret"))
        var dumped = ""
        dump(secret, to: &dumped)
        #expect(!dumped.contains("5ecret"))
    }
}
