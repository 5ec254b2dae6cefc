package import Wire

/// A request as sent to the server: all that one HTTP exchange needs, except the network options.
package struct HTTPRequest: Sendable {
    /// The bytes after the head.
    package enum Body: Sendable, Equatable {
        case none
        case bytes([UInt8])
        /// From the caller, as fast as the connection accepts it. Chunked if `length` is nil.
        case stream(length: Int?)

        /// Whether it is known to have no bytes.
        var isEmpty: Bool {
            switch self {
            case .none: true
            case .bytes(let bytes): bytes.isEmpty
            case .stream(let length): length == 0
            }
        }
    }

    package var method: String
    package var url: HTTPURL
    /// Each passed `HeaderField.validate`.
    package var fields: [HeaderField]
    package var body: Body

    package init(
        _ method: String = "GET", _ url: HTTPURL, fields: [HeaderField] = [], body: Body = .none
    ) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
    }

    package func values(_ name: String) -> [String] {
        fields.lazy.filter { $0.name.equalsIgnoringASCIICase(name) }.map { $0.value }
    }

    package func has(_ name: String) -> Bool {
        for field in fields where field.name.equalsIgnoringASCIICase(name) { return true }
        return false
    }

    /// Whether the body waits for the server's permission (RFC 9110 §10.1.1).
    package var expectsContinue: Bool {
        if body == .none || body == .bytes([]) { return false }
        return fields.contains {
            $0.name.equalsIgnoringASCIICase("Expect")
                && $0.value.equalsIgnoringASCIICase("100-continue")
        }
    }

    /// Sets a header, which replaces all with the same name. nil removes them.
    package mutating func set(_ name: String, _ value: String?) {
        set(name, content: value.map { FieldText($0) })
    }

    /// The same with the bytes of a server's header.
    package mutating func set(_ name: String, content: FieldText?) {
        fields.removeAll { $0.name.equalsIgnoringASCIICase(name) }
        if let content { fields.append(HeaderField(name: name, content: content)) }
    }

    /// Adds the other headers, except those whose names are among these headers.
    package mutating func lay(over others: [HeaderField]) {
        guard !fields.isEmpty else { return fields = others }
        guard !others.isEmpty else { return }
        let own = HeaderFields(fields)
        fields = others.filter { !own.has($0.name) } + fields
    }
}
