import CShims

/// A password as accounts of Meteor take it (M15): its digest, so that no log of the server
/// can contain the password itself.
package enum DDPPassword {
    /// - Throws: `.system` if libcrypto fails.
    package static func digest(_ password: String) throws(RealtimeError) -> EJSON {
        let password = Array(password.utf8)
        var isMade = false
        let digest = [UInt8](unsafeUninitializedCapacity: 32) { digest, count in
            isMade = shim_sha256(password, password.count, nil, 0, digest.baseAddress)
            count = isMade ? 32 : 0
        }
        guard isMade else {
            throw RealtimeError(.system, "libcrypto could not make the digest of a password")
        }
        var fields = EJSONObject()
        fields["digest"] = .string(hexText(digest))
        fields["algorithm"] = .string("sha-256")
        return .object(fields)
    }
}
