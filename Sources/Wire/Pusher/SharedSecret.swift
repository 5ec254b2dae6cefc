import CShims

/// The key of an encrypted channel: 32 bytes, never printed, overwritten when released.
package struct SharedSecret: Sendable, CustomStringConvertible {
    private let bytes: SecretBytes

    package static let size = 32

    package init?(_ bytes: SecretBytes) {
        guard bytes.count == SharedSecret.size else { return nil }
        self.bytes = bytes
    }

    /// - Returns: nil if the text is not base64 of 32 bytes.
    package init?(base64 text: UnsafeRawBufferPointer) {
        let bytes = SecretBytes(count: SharedSecret.size) { bytes in
            decodeBase64(text, into: bytes) == SharedSecret.size
        }
        guard let bytes else { return nil }
        self.bytes = bytes
    }

    /// The key that a server derives from its master key: SHA-256 of the channel's name and the
    /// master key.
    /// - Throws: `.system` if libcrypto fails.
    package init(channel: String, masterKey: SecretBytes) throws(RealtimeError) {
        var channel = channel
        let bytes = SecretBytes(count: SharedSecret.size) { digest in
            channel.withUTF8 { channel in
                masterKey.withBytes { key in
                    shim_sha256(
                        channel.baseAddress, channel.count,
                        key.baseAddress?.assumingMemoryBound(to: UInt8.self), key.count,
                        digest.baseAddress?.assumingMemoryBound(to: UInt8.self))
                }
            }
        }
        guard let bytes else {
            throw RealtimeError(.system, "libcrypto could not derive the key of a channel")
        }
        self.bytes = bytes
    }

    package var description: String { "(secret)" }

    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        bytes.withBytes(body)
    }
}
