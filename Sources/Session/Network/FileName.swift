package import Wire

/// Checks the names of files and folders in options.
package enum FileName {
    /// Rejects the text of a key or certificate that was given instead of the name of a file with
    /// it, and what cannot be a name. It may be a private key, so it must not become a part of an
    /// error of the system, which quotes names.
    package static func check(_ name: String, _ what: String) throws(RealtimeError) {
        let reason: String
        if isPEM(name) {
            reason = "is PEM text; the name of a file with it is expected"
        } else if name.utf8.contains(UInt8(ascii: "\n")) {
            reason = "has a line feed; the name of a file is expected"
        } else if name.utf8.split(separator: UInt8(ascii: "/")).contains(where: { $0.count > 255 })
        {
            reason = "has a part of more than 255 bytes; the name of a file is expected"
        } else {
            return
        }
        throw RealtimeError(.invalidArgument, "\(what) \(reason)")
    }

    /// Whether a text contains a PEM block (RFC 7468 §2), or is the base64 of one in one line.
    package static func isPEM(_ text: String) -> Bool {
        let mark = "-----BEGIN ".utf8
        var rest = text.utf8[...]
        while rest.count >= mark.count {
            if rest.starts(with: mark) { return true }
            rest = rest.dropFirst()
        }
        return isDER(text)
    }

    /// Whether a text is base64, and that a DER sequence (X.690 §8.1.3), as keys and certificates
    /// are. The shortest private keys, of Ed25519, have 48 bytes.
    private static func isDER(_ text: String) -> Bool {
        // The tag of a sequence, 0x30, begins with the digit M.
        guard text.utf8.count >= 64, text.utf8.first == UInt8(ascii: "M") else { return false }
        let bytes = [UInt8](unsafeUninitializedCapacity: text.utf8.count) { bytes, count in
            var text = text
            count = text.withUTF8 {
                decodeBase64(UnsafeRawBufferPointer($0), into: UnsafeMutableRawBufferPointer(bytes))
                    ?? 0
            }
        }
        guard bytes.count >= 48, bytes[0] == 0x30 else { return false }
        let sizes = bytes[1] < 0x80 ? 0 : Int(bytes[1] & 0x7F)
        guard sizes < 4 else { return false }
        let size = sizes == 0 ? Int(bytes[1]) : bytes[2..<2 + sizes].reduce(0) { $0 << 8 | Int($1) }
        return 2 + sizes + size == bytes.count
    }
}
