/// Reads the head of an HTTP/1 response from bytes split anywhere (RFC 9112 §2 to §5). It rejects
/// input that two readers could interpret differently: blanks before the colon, folded lines, stray
/// CR and NUL. It accepts a bare LF as a line end (RFC 9112 §2.2). It skips interim responses
/// (RFC 9110 §15.2) except 101, which is final for a client that asked to upgrade.
package struct ResponseHeadReader {
    /// How many fields one head may have.
    package static let fieldCountLimit = 128
    /// How many interim responses may come before the final one.
    package static let interimCountLimit = 8

    package enum Step {
        case needMoreBytes
        /// The complete head. The first `bytesUsed` bytes of this input belong to it.
        case head(ResponseHead, bytesUsed: Int)
    }

    private enum State {
        case statusLine
        case fields(ResponseHead)
        /// A head was returned or an error thrown.
        case ended
    }

    private let limit: Int
    private let owner: OptionOwner
    private var state = State.statusLine
    /// The line being read, without its LF. Never longer than `limit`.
    private var line: [UInt8] = []
    /// Bytes of the head being read, including the current line.
    private var headBytes = 0
    private var interimCount = 0

    /// - Parameters:
    ///   - limit: the most bytes of the status line and the fields together.
    ///   - owner: the object whose option the limit is.
    package init(limit: Int, of owner: OptionOwner = .websocket) {
        precondition(limit > 0, "a head needs room")
        self.limit = limit
        self.owner = owner
    }

    /// Reads the next bytes from the server.
    /// - Throws: `.handshake` if they are not an HTTP/1 response, `.tooLarge` above a limit,
    ///   `.state` after a head was returned or an error was thrown.
    package mutating func read(_ input: UnsafeRawBufferPointer) throws(RealtimeError) -> Step {
        do {
            return try advance(input)
        } catch {
            state = .ended
            throw error
        }
    }

    private mutating func advance(_ input: UnsafeRawBufferPointer) throws(RealtimeError) -> Step {
        var used = 0
        while used < input.count {
            let rest = UnsafeRawBufferPointer(rebasing: input[used...])
            // Bytes above the limit are not searched, so the line cannot exceed it.
            let window = rest.prefix(limit - headBytes)
            guard let lineFeed = window.firstIndex(of: 0x0A) else {
                if rest.count > window.count { throw tooLarge }
                line.append(contentsOf: window)
                headBytes += window.count
                return .needMoreBytes
            }
            line.append(contentsOf: window[..<lineFeed])
            used += lineFeed + 1
            headBytes += lineFeed + 1
            if let head = try endLine() { return .head(head, bytesUsed: used) }
        }
        return .needMoreBytes
    }

    private var tooLarge: RealtimeError {
        RealtimeError(
            .tooLarge,
            "the server's answer has more than \(limit) bytes of status line and headers"
                + owner.mention(.maxHeaderBytes))
    }

    /// Parses the finished line. Returns the head after the last line of a final response.
    private mutating func endLine() throws(RealtimeError) -> ResponseHead? {
        if line.last == 0x0D { line.removeLast() }
        defer { line.removeAll(keepingCapacity: true) }
        switch state {
        case .statusLine:
            state = .fields(try parseStatusLine(line))
            return nil
        case .fields(var head):
            // Move the head out of `state`, so that appending to its array does not copy it.
            state = .ended
            if line.isEmpty { return try endHead(head) }
            if head.fields.count == Self.fieldCountLimit {
                throw RealtimeError(
                    .tooLarge,
                    "the server's answer has more than \(Self.fieldCountLimit) header fields")
            }
            head.fields.append(try parseField(line))
            state = .fields(head)
            return nil
        case .ended:
            throw RealtimeError(.state, "the server's answer has been read to its end already")
        }
    }

    private mutating func endHead(_ head: ResponseHead) throws(RealtimeError) -> ResponseHead? {
        guard (100...199).contains(head.status), head.status != 101 else { return head }
        interimCount += 1
        if interimCount > Self.interimCountLimit {
            throw RealtimeError(
                .handshake,
                "the server sent more than \(Self.interimCountLimit) interim (1xx) responses")
        }
        headBytes = 0
        state = .statusLine
        return nil
    }
}

/// Parses `HTTP/1.x SP 3DIGIT SP reason` (RFC 9112 §4). Some servers omit both the last blank and
/// the reason.
private func parseStatusLine(_ line: [UInt8]) throws(RealtimeError) -> ResponseHead {
    let prefix = Array("HTTP/1.".utf8)
    guard line.count >= 12, line.starts(with: prefix), line[7].isASCIIDigit, line[8] == 0x20,
        line[9...11].allSatisfy({ $0.isASCIIDigit }), line[9] != UInt8(ascii: "0"),
        line.count == 12 || line[12] == 0x20, isFieldText(line[12...])
    else {
        throw RealtimeError(
            .handshake,
            "the server's answer is not HTTP/1.1: its first line is "
                + String(decoding: line, as: UTF8.self).quoted(upTo: 60))
    }
    let status = line[9...11].reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    return ResponseHead(
        status: status, reason: FieldText(bytes: line[12...].trimmingBlanks),
        minorVersion: Int(line[7] - UInt8(ascii: "0")))
}

/// Parses `name ":" OWS value OWS` (RFC 9112 §5).
private func parseField(_ line: [UInt8]) throws(RealtimeError) -> HeaderField {
    if isBlank(line[0]) {
        throw RealtimeError(
            .handshake, "the server's answer has a folded header line, which RFC 9112 §5.2 forbids")
    }
    let colon = line.firstIndex(of: UInt8(ascii: ":"))
    guard let colon, line[..<colon].isToken else {
        throw RealtimeError(
            .handshake,
            "the server's answer has a header line without a valid name before a colon: "
                + String(decoding: line[..<(colon ?? line.endIndex)], as: UTF8.self)
                .quoted(upTo: 60))
    }
    let name = String(decoding: line[..<colon], as: UTF8.self)
    let value = line[(colon + 1)...].trimmingBlanks
    guard isFieldText(value) else {
        throw RealtimeError(
            .handshake, "the server's answer has a CR or NUL in its header \(name.quoted(upTo: 60))"
        )
    }
    return HeaderField(name: name, content: FieldText(bytes: value))
}

/// Whether there is no NUL and no CR before the line's end (RFC 9112 §2.2, RFC 9110 §5.5). LF
/// cannot occur here.
private func isFieldText(_ bytes: ArraySlice<UInt8>) -> Bool {
    !bytes.contains { $0 == 0x00 || $0 == 0x0D }
}
