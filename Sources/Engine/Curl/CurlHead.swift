import Glibc
import Wire

/// Assembles a response's head from the lines that libcurl passes. HTTP/2 heads look the same,
/// because libcurl writes them like HTTP/1's. Interim responses are skipped and trailers ignored;
/// both count against the limit, because libcurl (7.88) keeps all their lines in memory.
struct CurlHead {
    /// The limit for the heads of one response in bytes: interim ones, the final one, and trailers.
    static let limit = 256 << 10
    /// Enough for most heads.
    private static let usual = 400

    private(set) var isTooLarge = false
    /// Why the head must be refused, such as "answered with two values of Content-Length".
    private(set) var fault: String?
    private var faulty: ResponseHead?
    /// The final head, if it has a status but was rejected.
    var refused: ResponseHead? {
        if isDone { return faulty }
        return status >= 200
            ? ResponseHead(status: status, reason: reason, minorVersion: minorVersion) : nil
    }
    /// Whether any byte of a response has arrived, including interim ones.
    private(set) var hasBegun = false
    /// Whether an interim response 100 Continue has arrived.
    private(set) var saysContinue = false
    /// The current head: its status line, and its other lines with their ends.
    private var status = 0
    private var reason = FieldText("")
    private var minorVersion = 1
    private var lines: [UInt8] = []
    private var nameLengths = ResponseHead.NameLengths()
    private(set) var bytes = 0
    private var isFirstLine = true
    private(set) var isDone = false

    /// Reads one line, including its end.
    /// - Returns: the final head, after its last line.
    mutating func read(_ line: UnsafeRawBufferPointer) -> ResponseHead? {
        hasBegun = true
        bytes += line.count
        if bytes > CurlHead.limit {
            isTooLarge = true
            return nil
        }
        guard !isDone else { return nil }
        if line.count <= 2, line.allSatisfy({ $0 == 0x0D || $0 == 0x0A }) { return end() }
        defer { isFirstLine = false }
        if isFirstLine, CurlHead.isStatus(line) {
            readStatus(line)
        } else {
            if lines.isEmpty { lines.reserveCapacity(CurlHead.usual) }
            lines.append(contentsOf: line)
            if let colon = line.firstByte(UInt8(ascii: ":")) { nameLengths.insert(colon) }
        }
        return nil
    }

    private static func isStatus(_ line: UnsafeRawBufferPointer) -> Bool {
        let mark: StaticString = "HTTP/"
        guard let base = line.baseAddress, line.count > mark.utf8CodeUnitCount else { return false }
        return memcmp(base, mark.utf8Start, mark.utf8CodeUnitCount) == 0
    }

    private mutating func end() -> ResponseHead? {
        defer {
            isFirstLine = true
            lines = []
            nameLengths = ResponseHead.NameLengths()
        }
        if status == 100 { saysContinue = true }
        // libcurl would take everything that follows for the body.
        if status == 101 {
            fault = "answered 101: it switches to a protocol that was not requested"
        }
        guard status >= 200 else { return nil }
        isDone = true
        let head = ResponseHead(
            status: status, reason: reason, lines: lines, nameLengths: nameLengths,
            minorVersion: minorVersion)
        fault = head.lengthFault ?? head.codingFault
        guard fault != nil else { return head }
        faulty = head
        return nil
    }

    /// Parses `HTTP/1.1 200 OK` or `HTTP/2 200`, which libcurl has checked.
    private mutating func readStatus(_ line: UnsafeRawBufferPointer) {
        var end = line.count
        while end > 0, line[end - 1] == 0x0D || line[end - 1] == 0x0A { end -= 1 }
        var at = 0
        while at < end, line[at] != 0x20 { at += 1 }
        minorVersion =
            at == 8 && line[5] == UInt8(ascii: "1") && line[7] == UInt8(ascii: "0") ? 0 : 1
        at += 1
        status = 0
        while at < end, line[at] != 0x20, status < 1000 {
            guard line[at].isASCIIDigit else { break }
            status = status * 10 + Int(line[at] - UInt8(ascii: "0"))
            at += 1
        }
        at += 1
        reason = at < end ? FieldText(bytes: line[at..<end]) : FieldText("")
    }
}

extension ResponseHead {
    fileprivate var codingFault: String? {
        unaskedTransferCoding.map {
            "answered with the transfer coding \($0.quoted(upTo: 60)), which was not requested"
        }
    }

    /// What is wrong with Content-Length (RFC 9110 §8.6): a value that is not a number, is too
    /// large, or differs from another. Equal values count as one. With Transfer-Encoding it is
    /// ignored (RFC 9112 §6.3).
    fileprivate var lengthFault: String? {
        let lengths = values("Content-Length")
        guard !lengths.isEmpty, values("Transfer-Encoding").isEmpty else { return nil }
        var first: Int64?
        for value in lengths.lazy.flatMap({ $0.utf8.split(separator: UInt8(ascii: ",")) }) {
            let digits = Substring(value.trimmingBlanks)
            guard !digits.isEmpty, digits.utf8.allSatisfy({ $0.isASCIIDigit }),
                let length = Int64(digits)
            else { return "answered with the Content-Length \(String(digits).quoted(upTo: 40))" }
            if let first, first != length {
                return "answered with two different Content-Lengths, \(first) and \(length)"
            }
            first = length
        }
        return nil
    }
}
