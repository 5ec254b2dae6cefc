import Realtime

/// What a sink has of a body, so that a request can ask for the rest (RFC 9110, 14 and 15.3.7).
struct BodyPart {
    /// Of which version of the body it is; nil for the part of an earlier run.
    let version: BodyVersion?
    let count: Int

    var headers: [(name: String, value: String)] {
        // Offsets are of the body as it is without a coding.
        [("Range", "bytes=\(count)-"), ("Accept-Encoding", "identity")]
            + (version?.validator.map { [("If-Range", $0)] } ?? [])
    }

    /// What a response means for the part.
    enum Meaning {
        /// It has the next bytes.
        case rest(BodyRange)
        /// Nothing follows.
        case whole
        /// It is about another version of the body, so the part is of no use.
        case anotherVersion
        /// It is not about the rest: all of the body, or an error.
        case unrelated
    }

    /// - Throws: for other bytes than those that were asked for.
    func meaning(of answer: REST.Response) throws -> Meaning {
        let field = answer.header("content-range") ?? ""
        switch answer.status {
        case 206:
            guard let range = BodyRange(field), range.start == count else {
                throw RealtimeError(
                    .protocolViolation,
                    "\(answer.place) sends \(field.oneLine) instead of what follows byte \(count)")
            }
            let isSame = version?.isContinued(by: answer, range) ?? !answer.isCoded
            return isSame ? .rest(range) : .anotherVersion
        case 416:
            guard field.hasPrefix("bytes */"), let total = Int(field.dropFirst(8)) else {
                return .unrelated
            }
            let isKnown = (version?.total ?? total) == total
            return isKnown && total == count ? .whole : .anotherVersion
        default: return .unrelated
        }
    }
}

/// What a response says about the version of its body.
struct BodyVersion {
    /// The ETag, unless it is a weak one, which does not promise the same bytes (8.8.1).
    private let tag: String?
    /// Last-Modified, unless the body may have changed again in the same second (8.8.2.2).
    private let date: String?
    /// How many bytes it has; nil if that is unknown.
    private(set) var total: Int?

    init(_ answer: REST.Response) {
        tag = answer.header("etag").flatMap { $0.hasPrefix("W/") ? nil : $0 }
        let modified = answer.header("last-modified")
        date = modified == answer.header("date") ? nil : modified
        let field = answer.header(answer.status == 206 ? "content-range" : "content-length") ?? ""
        total = answer.isCoded ? nil : answer.status == 206 ? BodyRange(field)?.total : Int(field)
    }

    /// What the server can compare; nil if the rest cannot be asked for safely.
    var validator: String? { tag ?? date }

    /// With what a part of it says.
    func completed(by range: BodyRange) -> BodyVersion {
        var version = self
        version.total = total ?? range.total
        return version
    }

    /// Whether a part is of this version (15.3.7.3). The server was asked to compare the validator,
    /// but may ignore that. A part has the ETag in any case, but may lack the date (15.3.7).
    fileprivate func isContinued(by answer: REST.Response, _ range: BodyRange) -> Bool {
        if answer.isCoded { return false }
        if let total, let other = range.total, total != other { return false }
        if let tag { return answer.header("etag") == tag }
        guard let date, let other = answer.header("last-modified") else { return true }
        return date == other
    }
}

/// A Content-Range (RFC 9110, 14.4).
struct BodyRange {
    let start: Int
    /// The offset after the last byte.
    let end: Int
    /// How many bytes the whole has; nil if the server does not say so.
    let total: Int?

    /// nil for a text that is none.
    init?(_ text: String) {
        let bytes = text.utf8
        guard text.lowercased().utf8.starts(with: "bytes ".utf8) else { return nil }
        let parts = bytes.dropFirst(6).split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let ends = parts[0].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard ends.count == 2, let start = Int(decimal: ends[0]), let last = Int(decimal: ends[1]),
            start <= last, last < .max
        else { return nil }
        let isUnknown = parts[1].elementsEqual("*".utf8)
        let total = Int(decimal: parts[1])
        guard isUnknown || total.map({ $0 > last }) ?? false else { return nil }
        self.start = start
        end = last + 1
        self.total = total
    }
}

extension Int {
    /// Digits only: no sign.
    fileprivate init?(decimal digits: Substring.UTF8View) {
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        self.init(Substring(digits))
    }
}

extension REST.Response {
    /// The URL for messages: a query may contain a token.
    var place: Substring { url.prefix { $0 != "?" } }

    var isGood: Bool { (200...299).contains(status) }

    /// Whether its bytes are not those of the body itself.
    fileprivate var isCoded: Bool {
        header("content-encoding").map { $0.lowercased() != "identity" } ?? false
    }
}
