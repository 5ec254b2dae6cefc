/// The part of a URL that names a SockJS session: three digits, for load balancers, and eight
/// characters. It is secret: with it, anyone can read the session's messages.
package struct SockJSSessionID: Sendable, Equatable {
    /// Such as `042/a3kd05zz`.
    package let path: String

    private static let characters = Array("abcdefghijklmnopqrstuvwxyz012345".utf8)

    /// - Parameter random: in [0, 1), with a precision of 53 bits, 50 of which are used.
    package init(random: Double) {
        let random = random >= 0 && random < 1 ? random : 0
        var bits = UInt64(random * 0x1p53)
        let server = bits % 1000
        bits /= 1000
        var path: [UInt8] = []
        for unit in [server / 100, server / 10 % 10, server % 10] {
            path.append(UInt8(ascii: "0") + UInt8(unit))
        }
        path.append(UInt8(ascii: "/"))
        for _ in 0..<8 {
            path.append(SockJSSessionID.characters[Int(bits & 31)])
            bits >>= 5
        }
        self.path = String(decoding: path, as: UTF8.self)
    }
}
