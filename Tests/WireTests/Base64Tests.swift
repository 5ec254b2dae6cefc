import Testing
import Wire

@Suite struct Base64Tests {
    private func decoded(_ text: String, room: Int = 64) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0xAA, count: room)
        let count = Array(text.utf8).withUnsafeBytes { text in
            bytes.withUnsafeMutableBytes { decodeBase64(text, into: $0) }
        }
        return count.map { Array(bytes[..<$0]) }
    }

    /// RFC 4648 §10.
    @Test(arguments: ["", "f", "fo", "foo", "foob", "fooba", "foobar"])
    func vectors(text: String) {
        #expect(decoded(base64(Array(text.utf8))) == Array(text.utf8))
    }

    @Test func everyByteAtEveryPosition() {
        for length in 1...6 {
            for byte in UInt8.min...UInt8.max {
                let bytes = (0..<length).map { byte &+ UInt8(truncatingIfNeeded: $0 * 85) }
                #expect(decoded(base64(bytes)) == bytes)
            }
        }
    }

    @Test(arguments: [
        "A", "AA", "AAA", "A===", "====", "=AAA", "AA=A", "AB==", "AAB=", "AAA=AAAA", "AA==AAAA",
        "AA A", "AAA\n", "A-_A", "AAAé",
    ]) func otherTexts(text: String) {
        #expect(decoded(text) == nil)
    }

    @Test func itDoesNotWriteBeyondTheRoom() {
        #expect(decoded("AAAA", room: 3) == [0, 0, 0])
        #expect(decoded("AAAA", room: 2) == nil)
        #expect(decoded("AAA=", room: 2) == [0, 0])
        #expect(decoded("", room: 0) == [])
    }
}
