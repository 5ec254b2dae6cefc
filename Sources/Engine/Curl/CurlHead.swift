import Glibc
import Wire

/// Puts an answer's head together from the lines libcurl hands over: HTTP/1 and HTTP/2 alike, as
/// libcurl writes HTTP/2's in the manner of HTTP/1. Interim answers are skipped, trailers ignored.
struct CurlHead {
    /// Bytes of one head.
    static let limit = 256 << 10
    /// What most heads have at most.
    private static let usual = 400

    private(set) var isTooLarge = false
    /// A byte of an answer has come, of an interim one too.
    private(set) var hasBegun = false
    /// An interim answer has said so.
    private(set) var saysContinue = false
    /// Of the head that comes: the status line, and the others with their ends.
    private var status = 0
    private var reason = ""
    private var minorVersion = 1
    private var lines: [UInt8] = []
    private var nameLengths = ResponseHead.NameLengths()
    private var bytes = 0
    private var isDone = false

    /// Takes one line with its end.
    /// - Returns: the final head, at its last line.
    mutating func read(_ line: UnsafeRawBufferPointer) -> ResponseHead? {
        guard !isDone else { return nil }
        hasBegun = true
        bytes += line.count
        if bytes > CurlHead.limit {
            isTooLarge = true
            return nil
        }
        if line.count <= 2, line.allSatisfy({ $0 == 0x0D || $0 == 0x0A }) { return end() }
        if bytes == line.count, CurlHead.isStatus(line) {
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
        bytes = 0
        defer {
            lines = []
            nameLengths = ResponseHead.NameLengths()
        }
        if status == 100 { saysContinue = true }
        guard status >= 200 else { return nil }
        isDone = true
        return ResponseHead(
            status: status, reason: reason, lines: lines, nameLengths: nameLengths,
            minorVersion: minorVersion)
    }

    /// `HTTP/1.1 200 OK` or `HTTP/2 200`; libcurl has checked it.
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
        reason = at < end ? String(decoding: line[at..<end], as: UTF8.self) : ""
    }
}
