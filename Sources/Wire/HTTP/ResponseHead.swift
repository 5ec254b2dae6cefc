import CShims

/// Status line and header fields of an HTTP/1 response, in the order they came.
package struct ResponseHead: Equatable, Sendable {
    /// The x of HTTP/1.x.
    package var minorVersion: Int { parts.minorVersion }
    /// 100 to 999.
    package var status: Int { parts.status }
    package var reason: String { parts.reason.text }
    package var reasonText: FieldText { parts.reason }
    /// Host and port of the proxy whose word this is, for a request that it was to forward.
    package var proxy: String? {
        get { parts.proxy }
        set {
            own()
            parts.proxy = newValue
        }
    }

    /// Copies share it until one is changed: an answer's head is handed from one to the other.
    private var parts: Parts

    /// Unchecked because none is changed that has more than one owner.
    private final class Parts: @unchecked Sendable {
        let minorVersion: Int
        let status: Int
        let reason: FieldText
        @exclusivity(unchecked) var proxy: String?
        /// Lines that nobody has asked for yet: most answers are read for their status alone.
        /// Without them `taken` has the fields.
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

    /// How long the names of fields are: of most fields that are asked for it tells that there are
    /// none.
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

    /// With fields as they came: lines of a name, a colon and a value, each with its end; lines
    /// without a colon are left out.
    /// - Parameter nameLengths: of all names in front of a colon.
    package init(
        status: Int, reason: FieldText, lines: [UInt8], nameLengths: NameLengths,
        minorVersion: Int
    ) {
        parts = Parts(status, reason, minorVersion, lines: lines, nameLengths)
    }

    /// Before a change.
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
                fields.append(HeaderField(name: name, content: content(of: line, behind: colon)))
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

    /// The values of every field with this name, in order; names match in any ASCII case.
    package func values(_ name: String) -> [String] { contents(name).map { $0.text } }

    /// The same with their bytes.
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
                // Most lines have no colon there.
                guard line.count > wanted.count, line[wanted.count] == UInt8(ascii: ":") else {
                    return
                }
                for index in 0..<wanted.count
                where line[index] != wanted[index]
                    && line[index].asciiLowercased != wanted[index].asciiLowercased
                { return }
                values.append(content(of: line, behind: wanted.count))
            }
        }
        return values
    }

    /// Whether a comma-separated list, over all fields with this name, holds the token, in any
    /// ASCII case (RFC 9110 §5.6.1).
    package func hasToken(_ token: String, in name: String) -> Bool {
        values(name).contains { value in
            value.utf8.split(separator: UInt8(ascii: ",")).contains { element in
                let element = element.trimmingBlanks
                return !element.isEmpty && Substring(element).equalsIgnoringASCIICase(token)
            }
        }
    }

    /// Whether nothing but the end of the connection ends the body (RFC 9112 §6.3); that a HEAD
    /// request has none is not known here.
    package var hasBodyUntilClose: Bool {
        status != 204 && status != 304 && values("Content-Length").isEmpty
            && values("Transfer-Encoding").isEmpty
    }

    /// A transfer coding other than chunked, which a server may not use unless the request has a TE
    /// field that lists it (RFC 9110 §10.1.4). libcurl would decode it, without any limit.
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

    /// Each line, without its LF.
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

    /// What follows the colon, without the blanks and the CR around it.
    private func content(of line: UnsafeRawBufferPointer, behind colon: Int) -> FieldText {
        var start = colon + 1
        var end = line.count
        while start < end, isBlank(line[start]) { start += 1 }
        while start < end, isBlank(line[end - 1]) || line[end - 1] == 0x0D { end -= 1 }
        return FieldText(bytes: line[start..<end])
    }
}

extension UnsafeRawBufferPointer {
    /// The place of the first such byte.
    package func firstByte(_ byte: UInt8) -> Int? {
        let place = shim_find_byte(baseAddress?.assumingMemoryBound(to: UInt8.self), count, byte)
        return place == count ? nil : place
    }
}
