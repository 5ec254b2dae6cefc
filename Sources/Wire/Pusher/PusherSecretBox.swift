import CShims

/// Decrypts events of encrypted channels: NaCl's secretbox, XSalsa20 with Poly1305, by libsodium
/// (docs/pusher-rules.md, U10). Its storage is reused.
package struct PusherSecretBox: ~Copyable {
    package enum Opened {
        /// The decrypted text, valid until the next call.
        case text(UnsafeRawBufferPointer)
        /// There is no key, or the tag does not match: the key is wrong, or the data was changed.
        case wrongKey
        /// Another key would not help. The text says why.
        case malformed(String)
    }

    private var document = JSONDocument()
    private var box = ByteBuffer()

    private static let nonceBytes = 24
    private static let tagBytes = 16
    /// Larger storage is freed before the next event.
    private static let keptBytes = 64 << 10

    package init() {}

    /// - Throws: `.system` if libsodium is not installed.
    package static func checkLibrary() throws(RealtimeError) {
        guard shim_sodium_is_available() else {
            throw RealtimeError(
                .system,
                "encrypted channels need libsodium, which cannot be loaded; install it (Debian and "
                    + "Ubuntu: libsodium23)")
        }
    }

    /// Opens an event's data, `{"nonce": …, "ciphertext": …}` in base64.
    /// - Parameter secret: nil if there is no key: only the form is checked.
    /// - Throws: `.system` if libsodium is not installed.
    package mutating func open(
        _ data: PusherData, with secret: SharedSecret?
    ) throws(RealtimeError) -> Opened {
        try PusherSecretBox.checkLibrary()
        box.removeAll(keeping: PusherSecretBox.keptBytes)
        // The nonce, the tag and the encrypted text, as base64 and decoded.
        _ = box.reserve(2 * data.bytes.count)
        let parts: (JSONSpan?, JSONSpan?)? = try? document.read(data.bytes) { root in
            (root.member("nonce")?.span, root.member("ciphertext")?.span)
        }
        guard let parts else { return .malformed("the data is not JSON") }
        guard let nonce = decode(parts.0) else { return .malformed("the nonce is not base64") }
        guard nonce.count == PusherSecretBox.nonceBytes else {
            return .malformed("the nonce has \(nonce.count) bytes, and not 24")
        }
        guard let sealed = decode(parts.1) else {
            return .malformed("the ciphertext is not base64")
        }
        let count = sealed.count - PusherSecretBox.tagBytes
        guard count >= 0 else { return .malformed("the ciphertext is too short") }
        guard let secret else { return .wrongKey }
        let isOpen = secret.withBytes { key in
            shim_secretbox_open(
                sealed.baseAddress?.assumingMemoryBound(to: UInt8.self), count,
                nonce.baseAddress?.assumingMemoryBound(to: UInt8.self),
                key.baseAddress?.assumingMemoryBound(to: UInt8.self))
        }
        guard isOpen else { return .wrongKey }
        let text = UnsafeRawBufferPointer(rebasing: sealed[PusherSecretBox.tagBytes...])
        guard UTF8Validator.isValid(text) else {
            return .malformed("the decrypted text is not UTF-8")
        }
        return .text(text)
    }

    /// Appends a string's bytes, decoded from base64, to the box; nil if it is not such a string.
    private mutating func decode(_ span: JSONSpan?) -> UnsafeMutableRawBufferPointer? {
        guard let text = span?.string(in: &box) else { return nil }
        let room = box.reserve(text.count)
        guard let count = decodeBase64(text, into: room) else { return nil }
        box.commit(count)
        return UnsafeMutableRawBufferPointer(rebasing: room[..<count])
    }
}
