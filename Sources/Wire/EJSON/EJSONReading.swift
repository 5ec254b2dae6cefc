extension EJSON {
    /// Decodes a text of EJSON.
    /// - Parameter maximumDepth: how deep arrays and objects may be nested, at most 512.
    /// - Throws: `.protocolViolation` if the text is not JSON or too deep, or if a number, bytes or
    ///   an ObjectID cannot be decoded.
    public init(
        parsing text: String, maximumDepth: Int = 128
    ) throws(RealtimeError) {
        try self.init(parsing: Array(text.utf8), maximumDepth: maximumDepth)
    }

    public init(
        parsing text: [UInt8], maximumDepth: Int = 128
    ) throws(RealtimeError) {
        self = try text.withUnsafeBufferPointer { text throws(RealtimeError) in
            try EJSON(parsing: UnsafeRawBufferPointer(text), maximumDepth: maximumDepth)
        }
    }

    public init(
        parsing text: UnsafeRawBufferPointer, maximumDepth: Int = 128
    ) throws(RealtimeError) {
        var document = JSONDocument()
        self = try document.read(text, maximumDepth: maximumDepth) { root throws(RealtimeError) in
            try EJSON(root)
        }
    }

    /// Decodes a value of a JSON text.
    /// - Throws: see `init(parsing:)`.
    package init(_ node: JSONNode) throws(RealtimeError) {
        if node.kind == .object {
            if let special = try EJSON.special(node) {
                self = special
            } else {
                self = .object(try EJSONObject(node))
            }
        } else {
            self = try EJSON.plain(node) { (node) throws(RealtimeError) in try EJSON(node) }
        }
    }

    /// Decodes plain JSON, in which objects have no special meaning.
    package init(plain node: JSONNode) throws(RealtimeError) {
        self = try EJSON.plain(node) { (node) throws(RealtimeError) in try EJSON(plain: node) }
    }

    private static func plain(
        _ node: JSONNode, _ decode: (JSONNode) throws(RealtimeError) -> EJSON
    ) throws(RealtimeError) -> EJSON {
        switch node.kind {
        case .null: return .null
        case .bool: return .bool(node.bool ?? false)
        case .number:
            guard let number = node.double else { throw fault(node, "a number is too large") }
            return .number(number)
        case .string: return .string(node.string ?? "")
        case .array:
            var elements: [EJSON] = []
            for element in node.elements { elements.append(try decode(element)) }
            return .array(elements)
        case .object:
            var object = EJSONObject()
            for member in node.members {
                object[member.name.string ?? ""] = try decode(member.value)
            }
            return .object(object)
        }
    }

    /// The value that an object with special keys stands for; nil for an ordinary object.
    private static func special(_ node: JSONNode) throws(RealtimeError) -> EJSON? {
        var members = node.members
        guard let first = members.next(), first.name.startsWithDollar else { return nil }
        guard let second = members.next() else {
            return try special(first.name, first.value)
        }
        guard second.name.startsWithDollar, members.next() == nil else { return nil }
        if let source = node.member("$regexp")?.string, let flags = node.member("$flags")?.string {
            return .pattern(EJSONPattern(source: source, flags: flags))
        }
        guard let type = node.member("$type")?.string, let value = node.member("$value") else {
            return nil
        }
        if type.hasBytes("oid") {
            guard let id = value.withString({ ObjectID(hex: $0) }) ?? nil else {
                throw fault(value, "an ObjectID needs 24 hexadecimal digits")
            }
            return .objectID(id)
        }
        if type.hasBytes("Decimal"), let text = value.string { return .decimal(text) }
        return .custom(EJSONCustom(type: type, value: try EJSON(plain: value)))
    }

    private static func special(
        _ name: JSONNode, _ value: JSONNode
    ) throws(RealtimeError) -> EJSON? {
        if name.isText("$date") {
            if value.kind == .null { return .date(0) }
            return value.double.flatMap { Int64(exactly: $0.rounded(.towardZero)) }
                .map { .date($0) }
        }
        if name.isText("$binary"), value.kind == .string {
            guard let bytes = value.withString({ decode(base64: $0) }) ?? nil else {
                throw fault(value, "bytes are not base64")
            }
            return .bytes(bytes)
        }
        if name.isText("$InfNaN"), let sign = value.double {
            return .number(sign == 0 ? .nan : (sign < 0 ? -.infinity : .infinity))
        }
        if name.isText("$escape"), value.kind == .object {
            return .object(try EJSONObject(value))
        }
        return nil
    }

    private static func decode(base64 text: UnsafeRawBufferPointer) -> [UInt8]? {
        var isValid = false
        let bytes = [UInt8](unsafeUninitializedCapacity: text.count / 4 * 3) { bytes, count in
            let written = decodeBase64(text, into: UnsafeMutableRawBufferPointer(bytes))
            isValid = written != nil
            count = written ?? 0
        }
        return isValid ? bytes : nil
    }

    private static func fault(_ node: JSONNode, _ reason: String) -> RealtimeError {
        RealtimeError(.protocolViolation, "invalid EJSON at byte \(node.offset): \(reason)")
    }
}

extension EJSONObject {
    /// Decodes an object's members, whose keys are taken literally. Of members with one name the
    /// last one counts.
    package init(_ node: JSONNode) throws(RealtimeError) {
        self.init()
        reserveCapacity(node.members.reduce(0) { count, _ in count + 1 })
        // Most names differ from all before them in their length or their first or last byte.
        var seen: UInt64 = 0
        for member in node.members {
            let name = member.name.string ?? ""
            let value = try EJSON(member.value)
            let mark: UInt64 = 1 << name.roughHash
            if seen & mark == 0 { append(name, value) } else { self[name] = value }
            seen |= mark
        }
    }
}

extension String {
    /// Below 64.
    fileprivate var roughHash: UInt64 {
        let ends = UInt64(utf8.first ?? 0) &* 7 &+ UInt64(utf8.last ?? 0) &* 31
        return (ends &+ UInt64(utf8.count)) & 63
    }
}

extension JSONNode {
    fileprivate func isText(_ text: StaticString) -> Bool {
        withString { $0.isWord(text) } ?? false
    }

    fileprivate var startsWithDollar: Bool {
        withString { $0.first == UInt8(ascii: "$") } ?? false
    }
}
