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
        let names = KnownFieldNames()
        self = try document.read(text, maximumDepth: maximumDepth) { root throws(RealtimeError) in
            try EJSON(root, names)
        }
    }

    /// Decodes a value of a JSON text.
    /// - Parameter names: of objects that were decoded before.
    /// - Throws: see `init(parsing:)`.
    package init(
        _ node: JSONNode, _ names: KnownFieldNames = KnownFieldNames()
    ) throws(RealtimeError) {
        self = try EJSON.decode(node, names)
    }

    // A function, because an initializer would retain the names for each value.
    fileprivate static func decode(
        _ node: JSONNode, _ names: KnownFieldNames
    ) throws(RealtimeError) -> EJSON {
        switch node.kind {
        case .object:
            if let special = try special(node, names) { return special }
            return .object(try EJSONObject.decode(node, names))
        case .array:
            var elements: [EJSON] = []
            for element in node.elements { elements.append(try decode(element, names)) }
            return .array(elements)
        case .null, .bool, .number, .string: return try scalar(node)
        }
    }

    /// Decodes plain JSON, in which objects have no special meaning.
    package init(plain node: JSONNode) throws(RealtimeError) {
        switch node.kind {
        case .object:
            var object = EJSONObject()
            for member in node.members {
                object[member.name.string ?? ""] = try EJSON(plain: member.value)
            }
            self = .object(object)
        case .array:
            var elements: [EJSON] = []
            for element in node.elements { elements.append(try EJSON(plain: element)) }
            self = .array(elements)
        case .null, .bool, .number, .string: self = try EJSON.scalar(node)
        }
    }

    private static func scalar(_ node: JSONNode) throws(RealtimeError) -> EJSON {
        switch node.kind {
        case .bool: return .bool(node.bool ?? false)
        case .number:
            guard let number = node.double else { throw fault(node, "a number is too large") }
            return .number(number)
        case .string: return .string(node.string ?? "")
        case .null, .array, .object: return .null
        }
    }

    /// The value that an object with special keys stands for; nil for an ordinary object.
    private static func special(
        _ node: JSONNode, _ names: KnownFieldNames
    ) throws(RealtimeError) -> EJSON? {
        // Mostly not, which one byte shows; a $ may be written as an escape.
        var places = node.namePlaces
        guard let place = places.next() else { return nil }
        let byte = node.text[place.lowerBound + 1]
        guard byte == UInt8(ascii: "$") || byte == UInt8(ascii: "\\") else { return nil }
        var members = node.members
        guard let first = members.next(), first.name.startsWithDollar else { return nil }
        guard let second = members.next() else {
            return try special(first.name, first.value, names)
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
        _ name: JSONNode, _ value: JSONNode, _ names: KnownFieldNames
    ) throws(RealtimeError) -> EJSON? {
        if name.span.isWord("$date") {
            if value.kind == .null { return .date(0) }
            return value.double.flatMap { Int64(exactly: $0.rounded(.towardZero)) }
                .map { .date($0) }
        }
        if name.span.isWord("$binary"), value.kind == .string {
            guard let bytes = value.withString({ decode(base64: $0) }) ?? nil else {
                throw fault(value, "bytes are not base64")
            }
            return .bytes(bytes)
        }
        if name.span.isWord("$InfNaN"), let sign = value.double {
            return .number(sign == 0 ? .nan : (sign < 0 ? -.infinity : .infinity))
        }
        if name.span.isWord("$escape"), value.kind == .object {
            return .object(try EJSONObject.decode(value, names))
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
    /// Decodes the members of a JSON object, as `EJSON` does.
    package init(_ node: JSONNode) throws(RealtimeError) {
        self = try EJSONObject.decode(node, KnownFieldNames())
    }

    /// Decodes an object's members, whose keys are taken literally. Of members with one name the
    /// last one counts.
    fileprivate static func decode(
        _ node: JSONNode, _ known: KnownFieldNames
    ) throws(RealtimeError) -> EJSONObject {
        guard let names = known.names(of: node) else {
            var object = EJSONObject()
            for member in node.members {
                object[member.name.string ?? ""] = try EJSON.decode(member.value, known)
            }
            return object
        }
        guard names.count > 0 else { return EJSONObject() }
        let storage = FieldStorage.make(names, capacity: names.count)
        for (_, value) in node.members { storage.append(try EJSON.decode(value, known)) }
        return EJSONObject(storage)
    }
}

extension JSONNode {
    fileprivate var startsWithDollar: Bool {
        withString { $0.first == UInt8(ascii: "$") } ?? false
    }
}
