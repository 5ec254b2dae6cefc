import CShims

/// Base64 with padding (RFC 4648 §4). For headers: a few KiB at most.
package func base64(_ bytes: [UInt8]) -> String {
    // One more byte for the NUL that is written after the text.
    let capacity = 4 * ((bytes.count + 2) / 3) + 1
    return String(unsafeUninitializedCapacity: capacity) { text in
        shim_base64(bytes, bytes.count, text.baseAddress)
        return capacity - 1
    }
}

/// The SHA-1 digest; nil if libcrypto cannot compute one.
package func sha1(_ bytes: [UInt8]) -> [UInt8]? {
    var succeeded = false
    let digest = [UInt8](unsafeUninitializedCapacity: 20) { digest, count in
        succeeded = shim_sha1(bytes, bytes.count, digest.baseAddress)
        count = succeeded ? 20 : 0
    }
    return succeeded ? digest : nil
}
