import Wire

/// Keys of encrypted channels, and payloads that were sealed with them by libsodium.
enum PusherKeys {
    struct Sealed {
        let nonce: String
        let ciphertext: String
        let text: String
    }

    static let keys: [SharedSecret?] = (1...3 as ClosedRange<UInt8>).map { byte in
        let bytes = [UInt8](repeating: byte, count: SharedSecret.size)
        return bytes.withUnsafeBytes { SharedSecret(SecretBytes($0)) }
    }

    /// Three payloads for each key.
    static let sealed: [[Sealed]] = [
        [
            (
                "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
                "rPlzzNPa1VXDaxqEF2d01qU5Ib7ZGaHB49MGBjQS+TPU8g=="
            ),
            (
                "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB",
                "X53maVemrI46H0bT6OYyGprktM6FKPEMwTp2QZ/Jnw2sdg=="
            ),
            (
                "AgICAgICAgICAgICAgICAgICAgICAgIC",
                "b8eLjJ9iTp4R2XhOOKlTyoZHtZgHGOh9TF/DmyAyn5SaKw=="
            ),
        ],
        [
            (
                "EBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ",
                "oJ6uBUK9dOY4QSt+NCvXoxp6JlNjxypt7/wcvyj6lpFx2Q=="
            ),
            (
                "ERERERERERERERERERERERERERERERER",
                "6haENZS/4nsKsdFHY1vM36YGcuASsdN9dZi8b7xC6/xJNA=="
            ),
            (
                "EhISEhISEhISEhISEhISEhISEhISEhIS",
                "eFzdmwySTCrBUsau0EbLrz2y302gVx48QsrDg1SspKnSyw=="
            ),
        ],
        [
            (
                "ICAgICAgICAgICAgICAgICAgICAgICAg",
                "RY4Xp4s4WPCVP7mccummznM2f6Z8MrD9+13Diy3msqqJ5A=="
            ),
            (
                "ISEhISEhISEhISEhISEhISEhISEhISEh",
                "n6CS92sI5fgFDuoqRCmzYNjiNoOnTxDMubr37UutvEeejg=="
            ),
            (
                "IiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIi",
                "gSv9cXW2+GtFlyK5IaOjjyC60AnYqoFW8wacRWn98Npwrg=="
            ),
        ],
    ].enumerated().map { key, pairs in
        pairs.enumerated().map { number, pair in
            Sealed(
                nonce: pair.0, ciphertext: pair.1, text: #"{"key":\#(key),"text":\#(number)}"#)
        }
    }
}
