/// The value of a Content-Type header (RFC 9110 §8.3.1), parsed as leniently as browsers do (WHATWG
/// MIME Sniffing §4.4): an invalid parameter does not invalidate the type.
package struct MediaType: Equatable, Sendable {
    package struct Parameter: Equatable, Sendable {
        /// In lower case.
        package var name: String
        package var value: String
    }

    /// `type/subtype`, in lower case.
    package let essence: String
    /// In the order received. If a name occurs twice, the first counts.
    package private(set) var parameters: [Parameter] = []

    /// - Parameter text: the header's value. The result is nil unless it begins with a type.
    package init?(_ text: String) {
        let bytes = Array(text.utf8.trimmingBlanks)
        var rest = bytes[...]
        let essence = rest.prefix { $0 != UInt8(ascii: ";") }
        rest = rest.dropFirst(essence.count)
        let names = essence.trimmingBlanks.split(
            separator: UInt8(ascii: "/"), maxSplits: 1, omittingEmptySubsequences: false)
        guard names.count == 2, names.allSatisfy({ $0.isToken }) else { return nil }
        self.essence = String(
            decoding: essence.trimmingBlanks.map({ $0.asciiLowercased }), as: UTF8.self)
        while rest.popFirst() != nil {
            if let parameter = MediaType.parameter(&rest),
                !parameters.contains(where: { $0.name == parameter.name })
            {
                parameters.append(parameter)
            }
        }
    }

    /// The type of a response, as browsers extract it (WHATWG Fetch, "extract a MIME type"): the
    /// last valid one counts, if there are several in one header or in several. If it equals the
    /// one before and has no charset, it takes over that one's.
    /// - Parameter values: of all Content-Type headers.
    package init?(contentType values: [String]) {
        var found: MediaType?
        for value in values.flatMap(MediaType.elements) {
            guard var type = MediaType(value), type.essence != "*/*" else { continue }
            if let found, found.essence == type.essence, type.value("charset") == nil,
                let charset = found.value("charset")
            {
                type.parameters.append(Parameter(name: "charset", value: charset))
            }
            found = type
        }
        guard let found else { return nil }
        self = found
    }

    /// The elements of a list, which commas separate outside of quoted strings.
    private static func elements(_ list: String) -> [String] {
        var elements: [[UInt8]] = [[]]
        var isQuoted = false
        var bytes = list.utf8.makeIterator()
        while let byte = bytes.next() {
            if byte == UInt8(ascii: ","), !isQuoted {
                elements.append([])
                continue
            }
            elements[elements.count - 1].append(byte)
            if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
            if byte == UInt8(ascii: "\\"), isQuoted, let next = bytes.next() {
                elements[elements.count - 1].append(next)
            }
        }
        return elements.map { String(decoding: $0, as: UTF8.self) }
    }

    /// Whether it is this type, with any parameters.
    package func matches(_ essence: String) -> Bool {
        self.essence.equalsIgnoringASCIICase(essence)
    }

    package func value(_ name: String) -> String? {
        parameters.first { $0.name.equalsIgnoringASCIICase(name) }?.value
    }

    /// Parses a parameter after its semicolon, up to the next one.
    private static func parameter(_ rest: inout ArraySlice<UInt8>) -> Parameter? {
        rest = rest.drop(while: isBlank)
        let name = rest.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: "=") }
        rest = rest.dropFirst(name.count)
        guard rest.first == UInt8(ascii: "=") else { return nil }
        rest = rest.dropFirst()
        let value: [UInt8]
        if rest.first == UInt8(ascii: "\"") {
            value = quotedString(&rest)
            rest = rest.drop { $0 != UInt8(ascii: ";") }
        } else {
            let plain = rest.prefix { $0 != UInt8(ascii: ";") }
            rest = rest.dropFirst(plain.count)
            value = Array(plain.trimmingBlanks)
            if value.isEmpty { return nil }
        }
        guard name.isToken else { return nil }
        return Parameter(
            name: String(decoding: name.map({ $0.asciiLowercased }), as: UTF8.self),
            value: String(decoding: value, as: UTF8.self))
    }

    /// Parses a quoted string (RFC 9110 §5.6.4). The closing quotation mark may be missing.
    private static func quotedString(_ rest: inout ArraySlice<UInt8>) -> [UInt8] {
        rest = rest.dropFirst()
        var value: [UInt8] = []
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return value
            case UInt8(ascii: "\\"): value.append(rest.popFirst() ?? byte)
            default: value.append(byte)
            }
        }
        return value
    }
}
