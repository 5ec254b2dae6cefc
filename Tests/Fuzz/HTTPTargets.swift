/// An HTTP date survives printing and parsing.
func fuzzDate(_ input: consuming Input) {
    let text = String(decoding: input.rest, as: UTF8.self)
    guard let seconds = parseHTTPDate(text) else { return }
    let printed = formatHTTPDate(seconds)
    // A leap second at the very end of the calendar has no date.
    let isBeyond = seconds > 253_402_300_799
    require(isBeyond || parseHTTPDate(printed) == seconds, "\(text) became \(printed)")
}

/// A Retry-After beside a Date, on two lines: gives a bounded wait, or none.
func fuzzRetryAfter(_ input: consuming Input) {
    var clock: Int64 = 0
    for _ in 0..<8 { clock = clock << 8 | Int64(input.byte()) }
    let lines = String(decoding: input.rest, as: UTF8.self).split(
        separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
    var fields = [HeaderField(name: "retry-after", value: String(lines[0]))]
    if lines.count == 2 { fields.append(HeaderField(name: "DATE", value: String(lines[1]))) }
    let head = ResponseHead(status: 503, fields: fields)
    guard let wait = retryTime(of: head, wallClock: clock) else { return }
    require(wait >= .zero && wait <= .seconds(100 * 366 * 86_400), "\(wait)")
    let kept = retryTime(of: HTTPResponse(head, body: []), wallClock: clock)
    require(kept == wait, "\(wait), of the answer that was kept \(String(describing: kept))")
}

/// A boundary, a NUL and a multipart body: parts must be in order, must not overlap, and must not
/// contain a delimiter.
func fuzzMultipart(_ input: consuming Input) {
    let bytes = input.rest
    let boundary = bytes.prefix { $0 != 0 }
    let body = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(boundary.count + 1))
    let name = String(decoding: boundary, as: UTF8.self)
    guard let type = MediaType("multipart/mixed; boundary=\(name)"),
        let value = type.value("boundary")
    else { return }
    let delimiter = Array("\r\n--\(value)".utf8)
    do throws(RealtimeError) {
        var reader = try Multipart(type)
        var end = 0
        while let part = try reader.next(body) {
            require(part.content.lowerBound >= end, "\(part) begins before \(end)")
            require(part.content.upperBound <= body.count, "\(part) ends beyond \(body.count)")
            end = part.content.upperBound
            require(!holds(Array(body[part.content]), delimiter), "\(part) holds a delimiter")
        }
    } catch {
        require(error.code == .protocolViolation, error.description)
    }
}

private func holds(_ bytes: [UInt8], _ needle: [UInt8]) -> Bool {
    bytes.indices.contains { bytes[$0...].starts(with: needle) }
}

/// A Location, resolved against a URL that the first byte chooses: the result survives parsing, and
/// resolving it again changes nothing.
func fuzzLocation(_ input: consuming Input) {
    let bases = [
        "http://example.com", "https://user:word@example.com:8443/a/b/c?d=e",
        "http://[::1]:80/x/../y//z/", "https://example.com/?q",
    ]
    let base = bases[Int(input.byte()) % bases.count]
    let location = Array(input.rest)
    do throws(RealtimeError) {
        let url = try HTTPURL(parsing: base, as: .http)
        let next = try url.resolving(redirect: location)
        let again = try HTTPURL(parsing: next.text, as: .http)
        require(again.text == next.text, "\(next.text), read again \(again.text)")
        let twice = try next.resolving(redirect: Array(next.text.utf8))
        require(twice.text == next.text, "\(next.text), resolved again \(twice.text)")
    } catch {
        require(
            [.invalidURL, .unsupportedScheme, .redirect].contains(error.code), error.description)
    }
}
