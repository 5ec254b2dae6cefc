import Testing
import Wire

/// The body of a response, fed whole and byte by byte.
private func body(
    _ fields: [(String, String)], _ bytes: String, status: Int = 500, limit: Int = 16
) -> (kept: String, isComplete: Bool)? {
    let head = ResponseHead(
        status: status, fields: fields.map { HeaderField(name: $0.0, value: $0.1) })
    var whole = RefusalBody(of: head, limit: limit)
    var single = whole
    Array(bytes.utf8).withUnsafeBytes { input in
        whole.read(input)
        for index in input.indices {
            single.read(UnsafeRawBufferPointer(rebasing: input[index...index]))
        }
    }
    guard whole.bytes == single.bytes, whole.isComplete == single.isComplete else { return nil }
    return (String(decoding: whole.bytes, as: UTF8.self), whole.isComplete)
}

@Suite struct RefusalBodyTests {
    @Test(arguments: [
        ("5", "hello and more", "hello", true), ("5", "hel", "hel", false), ("0", "x", "", true),
        ("99", "0123456789abcdefghi", "0123456789abcdef", true), ("none", "hello", "hello", false),
        ("-1", "hello", "hello", false), ("99999999999999999999", "hello", "hello", false),
    ])
    func aLengthIsKeptTo(_ length: String, _ bytes: String, _ kept: String, _ complete: Bool) {
        #expect(body([("Content-Length", length)], bytes)! == (kept, complete))
    }

    @Test(arguments: [
        ("5\r\nhello\r\n0\r\n\r\n", "hello", true), ("2;x=y\r\nhe\r\n3\r\nllo\r\n", "hello", false),
        ("zz\r\nhello", "", true), ("-5\r\nhello", "", true),
        ("ffffffffffffffffff\r\nhello", "", true), ("5\nhello\n0\n", "hello", true),
        ("7fffffffffffffff\r\n0123456789abcdefghi", "0123456789abcdef", true),
    ])
    func chunksArePutTogether(_ bytes: String, _ kept: String, _ complete: Bool) {
        #expect(body([("Transfer-Encoding", "chunked")], bytes)! == (kept, complete))
    }

    @Test func anEndlessChunkSizeFails() {
        let line = String(repeating: "0", count: 300)
        #expect(body([("Transfer-Encoding", "chunked")], line)! == ("", true))
    }

    @Test func aBodyWithoutLengthEndsWithTheConnection() {
        #expect(body([], "hello")! == ("hello", false))
        #expect(body([], "hello", status: 204)! == ("", true))
        #expect(body([], "hello", limit: 4)! == ("hell", true))
    }
}
