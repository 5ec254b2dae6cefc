import Foundation
import Testing
import Wire

/// Signatures, shared secrets and ciphertexts, made by the official PyPI `pusher` and by PyNaCl
/// from random input: see Tests/Support/pusher_cases.py.
@Suite struct PusherCaseTests {
    /// One JSON object on each line.
    private func cases() throws -> [JSONValue] {
        let standard = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Support/pusher_cases.jsonl")
        let named = ProcessInfo.processInfo.environment["PUSHER_CASES"]
        let file = named.map { URL(filePath: $0) } ?? standard
        return try Data(contentsOf: file).split(separator: UInt8(ascii: "\n")).map {
            try JSONValue(parsing: Array($0))
        }
    }

    private func forEachCase(_ check: ((String) throws -> String) throws -> Void) throws {
        let cases = try cases()
        #expect(cases.count >= 50)
        for one in cases {
            try check { name in try #require(one[name]?.stringValue) }
        }
    }

    @Test func signatures() throws {
        try forEachCase { member in
            let secret = SecretBytes(try member("secret"))
            let (key, socketID) = (try member("key"), try member("socket_id"))
            func auth(_ prefix: String, _ data: String?) throws -> String {
                try PusherSignature.channel(
                    prefix + member("name"), channelData: data, socketID: socketID, key: key,
                    secret: secret)
            }
            #expect(try auth("private-", nil) == member("private_auth"))
            #expect(try auth("presence-", member("channel_data")) == member("presence_auth"))
            let user = try PusherSignature.user(
                member("user_data"), socketID: socketID, key: key, secret: secret)
            #expect(try user == member("user_auth"))
        }
    }

    @Test func encryptedEvents() throws {
        var box = PusherSecretBox()
        try forEachCase { member in
            let master = try #require(Data(base64Encoded: try member("master_key")))
            let derived = try SharedSecret(
                channel: "private-encrypted-" + member("name"),
                masterKey: master.withUnsafeBytes { SecretBytes($0) })
            let given = Array(try member("shared_secret").utf8)
            let shared = try #require(given.withUnsafeBytes { SharedSecret(base64: $0) })
            let other = SharedSecret(SecretBytes(String(repeating: "x", count: 32)))
            let text = Array(try member("plain").utf8)
            let event = Array(try member("event").utf8)
            for (secret, opened) in [(derived, text), (shared, text), (try #require(other), nil)] {
                let result: [UInt8]? = try event.withUnsafeBytes { event in
                    switch try box.open(PusherData(.text, event), with: secret) {
                    case .text(let text): Array(text)
                    case .wrongKey: nil
                    case .malformed(let why):
                        throw RealtimeError(.protocolViolation, why)
                    }
                }
                #expect(result == opened)
            }
        }
    }
}
