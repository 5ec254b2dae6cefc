import CShims

/// The status line and header fields of an HTTP/1 response, in their order.
package struct ResponseHead: Equatable, Sendable {
    /// The x of HTTP/1.x.
    package var minorVersion: Int { parts.minorVersion }
    /// 100 to 999.
    package var status: Int { parts.status }
    package var reason: String { parts.reason.text }
    package var reasonText: FieldText { parts.reason }
    /// Host and port of the proxy that sent this response itself, for a request that it was to
    /// forward.
    package var proxy: String? {
        get { parts.proxy }
        set {
            own()
            parts.proxy = newValue
        }
    }

    /// Copies share this until one of them is changed, because a head is passed on several times.
    private var parts: Parts

    /// Unchecked, because an instance is changed only while it has one owner.
    private final class Parts: @unchecked Sendable {
        let minorVersion: Int
        let status: Int
        let reason: FieldText
        @exclusivity(unchecked) var proxy: String?
        /// The raw lines, until `fields` is changed: most responses are read only for their status.
        /// If empty, `taken` has the fields.
        @exclusivity(unchecked) var lines: [UInt8]
        let nameLengths: NameLengths
        @exclusivity(unchecked) var taken: [HeaderField]

        init(
            _ status: Int, _ reason: FieldText, _ minorVersion: Int, lines: [UInt8] = [],
            _ nameLengths: NameLengths = NameLengths(), taken: [HeaderField] = []
        ) {
            self.minorVersion = minorVersion
            self.status = status
            self.reason = reason
            self.lines = lines
            self.nameLengths = nameLengths
            self.taken = taken
        }
    }

    /// The set of the fields' name lengths. For most fields that are looked up, it shows at once
    /// that they are not there.
    package struct NameLengths: Sendable {
        private var bits: UInt64 = 0

        package init() {}

        package mutating func insert(_ length: Int) { bits |= 1 << UInt64(length & 63) }
        func mayHold(_ length: Int) -> Bool { bits & 1 << UInt64(length & 63) != 0 }
    }

    package init(
        status: Int, reason: String = "", fields: [HeaderField] = [], minorVersion: Int = 1
    ) {
        parts = Parts(status, FieldText(reason), minorVersion, taken: fields)
    }

    package init(status: Int, reason: FieldText, minorVersion: Int) {
        parts = Parts(status, reason, minorVersion)
    }

    /// Makes a head from unparsed lines. Each has a name, a colon, a value and a line end; lines
    /// without a colon are ignored.
    /// - Parameter nameLengths: the lengths of all names before a colon.
    package init(
        status: Int, reason: FieldText, lines: [UInt8], nameLengths: NameLengths,
        minorVersion: Int
    ) {
        parts = Parts(status, reason, minorVersion, lines: lines, nameLengths)
    }

    /// Copies the parts before a change if they are shared.
    private mutating func own() {
        guard !isKnownUniquelyReferenced(&parts) else { return }
        let copy = Parts(
            status, parts.reason, minorVersion, lines: parts.lines, parts.nameLengths,
            taken: parts.taken)
        copy.proxy = parts.proxy
        parts = copy
    }

    package var fields: [HeaderField] {
        get {
            guard !parts.lines.isEmpty else { return parts.taken }
            var fields: [HeaderField] = []
            forEachLine { line in
                guard let colon = line.firstByte(UInt8(ascii: ":")) else { return }
                let name = FieldText(bytes: line[..<colon]).text
                fields.append(HeaderField(name: name, content: content(of: line, after: colon)))
            }
            return fields
        }
        _modify {
            own()
            parts.taken = fields
            parts.lines = []
            yield &parts.taken
        }
    }

    /// The values of all fields with this name, in order. Names match in any ASCII case.
    package func values(_ name: String) -> [String] { contents(name).map { $0.text } }

    /// The values of all fields with this name, with their original bytes.
    package func contents(_ name: String) -> [FieldText] {
        guard !parts.lines.isEmpty else {
            return parts.taken.lazy.filter { $0.name.equalsIgnoringASCIICase(name) }
                .map { $0.content }
        }
        guard parts.nameLengths.mayHold(name.utf8.count) else { return [] }
        var values: [FieldText] = []
        var name = name
        name.withUTF8 { wanted in
            forEachLine { line in
                // In most lines, the colon is elsewhere.
                guard line.count > wanted.count, line[wanted.count] == UInt8(ascii: ":") else {
                    return
                }
                for index in 0..<wanted.count
                where line[index] != wanted[index]
                    && line[index].asciiLowercased != wanted[index].asciiLowercased
                { return }
                values.append(content(of: line, after: wanted.count))
            }
        }
        return values
    }

    /// Whether a comma-separated list contains the token, in any ASCII case. The list spans all
    /// fields with this name (RFC 9110 §5.6.1).
    package func hasToken(_ token: String, in name: String) -> Bool {
        values(name).contains { value in
            value.utf8.split(separator: UInt8(ascii: ",")).contains { element in
                let element = element.trimmingBlanks
                return !element.isEmpty && Substring(element).equalsIgnoringASCIICase(token)
            }
        }
    }

    /// Whether only the end of the connection ends the body (RFC 9112 §6.3). Responses to HEAD,
    /// which have no body, must be excluded by the caller.
    package var hasBodyUntilClose: Bool {
        status != 204 && status != 304 && values("Content-Length").isEmpty
            && values("Transfer-Encoding").isEmpty
    }

    /// A transfer coding other than chunked. A server may not use one unless the request lists it
    /// in a TE field (RFC 9110 §10.1.4), and libcurl would decode it without any limit.
    package var unaskedTransferCoding: String? {
        for value in values("Transfer-Encoding") {
            for element in value.utf8.split(separator: UInt8(ascii: ",")) {
                let name = Substring(element.trimmingBlanks)
                if !name.isEmpty, !name.equalsIgnoringASCIICase("chunked"),
                    !name.equalsIgnoringASCIICase("identity")
                {
                    return String(name)
                }
            }
        }
        return nil
    }

    package static func == (a: ResponseHead, b: ResponseHead) -> Bool {
        a.minorVersion == b.minorVersion && a.status == b.status && a.reasonText == b.reasonText
            && a.fields == b.fields
    }

    /// Calls `body` with each line, without its LF.
    private func forEachLine(_ body: (UnsafeRawBufferPointer) -> Void) {
        parts.lines.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let tail = UnsafeRawBufferPointer(rebasing: rest)
                let end = tail.firstByte(0x0A) ?? tail.count
                body(UnsafeRawBufferPointer(rebasing: tail[..<end]))
                rest = rest.dropFirst(end + 1)
            }
        }
    }

    /// The text after the colon, without the blanks and the CR around it.
    private func content(of line: UnsafeRawBufferPointer, after colon: Int) -> FieldText {
        var start = colon + 1
        var end = line.count
        while start < end, isBlank(line[start]) { start += 1 }
        while start < end, isBlank(line[end - 1]) || line[end - 1] == 0x0D { end -= 1 }
        return FieldText(bytes: line[start..<end])
    }
}

extension UnsafeRawBufferPointer {
    /// The offset of the first such byte.
    package func firstByte(_ byte: UInt8) -> Int? {
        let index = shim_find_byte(baseAddress?.assumingMemoryBound(to: UInt8.self), count, byte)
        return index == count ? nil : index
    }
}
