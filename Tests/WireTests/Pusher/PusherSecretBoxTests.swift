import Testing
import Wire

/// The vector of docs/pusher-rules.md, U10, and what must not be opened.
@Suite struct PusherSecretBoxTests {
    private let master = "8QtOksU0XPlmeKk+Z8GMsHUSB9O51fyoqQ9YIEaVFt4="
    private let shared = "Kac8DG5/eTTzqfIZZ9HXAmnm6v4eMLUPYDHQdMHwBl4="
    private let nonce = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
    private let ciphertext = "DhyZvi1J2HACvtrFpT+c+kw4vAf12CcEtKEAhWVJiv7kl3qtF4ZyBhesP1r7jA=="
    private let text = #"{"amount":12,"note":"Grüße"}"#

    private enum Outcome: Equatable {
        case text(String)
        case wrongKey
        case malformed(String)
    }

    private func secret(_ base64: String) throws -> SharedSecret {
        try #require(Array(base64.utf8).withUnsafeBytes { SharedSecret(base64: $0) })
    }

    private func open(_ data: String, _ secret: SharedSecret?) throws -> Outcome {
        var box = PusherSecretBox()
        return try open(data, secret, &box)
    }

    private func open(
        _ data: String, _ secret: SharedSecret?, _ box: inout PusherSecretBox
    ) throws -> Outcome {
        let bytes = Array(data.utf8)
        return try bytes.withUnsafeBytes { bytes in
            switch try box.open(PusherData(.text, bytes), with: secret) {
            case .text(let text): .text(String(decoding: text, as: UTF8.self))
            case .wrongKey: .wrongKey
            case .malformed(let why): .malformed(why)
            }
        }
    }

    private func data(_ nonce: String, _ ciphertext: String) -> String {
        "{\"nonce\":\"\(nonce)\",\"ciphertext\":\"\(ciphertext)\"}"
    }

    @Test func theVectorOpens() throws {
        let key = try secret(shared)
        #expect(try open(data(nonce, ciphertext), key) == .text(text))
        // As PHP writes it.
        let escaped = ciphertext.replacing("/", with: "\\/")
        #expect(try open(data(nonce, escaped), key) == .text(text))
    }

    @Test func theMasterKeyGivesTheSecret() throws {
        var bytes = [UInt8](repeating: 0, count: 32)
        let count = Array(master.utf8).withUnsafeBytes { text in
            bytes.withUnsafeMutableBytes { decodeBase64(text, into: $0) }
        }
        #expect(count == 32)
        let masterKey = bytes.withUnsafeBytes { SecretBytes($0) }
        let key = try SharedSecret(channel: "private-encrypted-ledger", masterKey: masterKey)
        #expect(try open(data(nonce, ciphertext), key) == .text(text))
        let other = try SharedSecret(channel: "private-encrypted-other", masterKey: masterKey)
        #expect(try open(data(nonce, ciphertext), other) == .wrongKey)
    }

    @Test func changedDataDoesNotOpen() throws {
        let key = try secret(shared)
        for index in [0, 5, 20, 40, 60] {
            var bytes = Array(ciphertext.utf8)
            bytes[index] = bytes[index] == 0x41 ? 0x42 : 0x41
            let changed = String(decoding: bytes, as: UTF8.self)
            #expect(try open(data(nonce, changed), key) == .wrongKey)
        }
        let other = "BAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
        #expect(try open(data(other, ciphertext), key) == .wrongKey)
    }

    @Test(arguments: [
        "", "x", "12", "\"x\"", "[]", "null", "{}", #"{"nonce":"AAAA"}"#,
        #"{"nonce":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"}"#,
        #"{"nonce":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYX","ciphertext":7}"#,
        #"{"nonce":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYX","ciphertext":"AAAA"}"#,
        #"{"nonce":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYX","ciphertext":"*"}"#,
        #"{"nonce":"AAEC","ciphertext":"DhyZvi1J2HACvtrFpT+c+kw4vAf12CcEtKEAhWVJiv4="}"#,
        #"{"nonce":null,"ciphertext":null}"#,
    ]) func malformedData(data: String) throws {
        for key in [try secret(shared), nil] {
            guard case .malformed = try open(data, key) else {
                Issue.record("it is not malformed")
                return
            }
        }
    }

    @Test func withoutAKeyOnlyTheFormIsChecked() throws {
        #expect(try open(data(nonce, ciphertext), nil) == .wrongKey)
    }

    @Test func aBoxIsUsedAgain() throws {
        let key = try secret(shared)
        var box = PusherSecretBox()
        for _ in 0..<3 {
            #expect(try open(data(nonce, ciphertext), key, &box) == .text(text))
            #expect(try open("{", key, &box) == .malformed("the data is not JSON"))
        }
    }

    @Test(arguments: [
        "", "AAAA", "Kac8DG5/eTTzqfIZZ9HXAmnm6v4eMLUPYDHQdMHwBl4",
        "Kac8DG5/eTTzqfIZZ9HXAmnm6v4eMLUPYDHQdMHwBl5=",
        "Kac8DG5_eTTzqfIZZ9HXAmnm6v4eMLUPYDHQdMHwBl4=",
        " Kac8DG5/eTTzqfIZZ9HXAmnm6v4eMLUPYDHQdMHwBl4=",
    ]) func otherTextsAreNotSecrets(text: String) {
        #expect(Array(text.utf8).withUnsafeBytes { SharedSecret(base64: $0) } == nil)
    }

    @Test func aSecretIsNotPrinted() throws {
        let key = try secret(shared)
        var dumped = "\(key) \(String(reflecting: key))"
        dump(key, to: &dumped)
        #expect(!dumped.contains("Kac8"))
        #expect(dumped.hasPrefix("(secret)"))
    }
}
