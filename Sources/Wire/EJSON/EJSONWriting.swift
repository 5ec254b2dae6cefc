extension EJSON {
    /// Appends the value as compact EJSON text. Whole numbers are written without a fraction, other
    /// ones with the shortest digits, as JavaScript does.
    public func write(to bytes: inout [UInt8]) { write(to: &bytes, isCanonical: false) }

    /// The value as compact EJSON text, see `write(to:)`.
    public var text: String { text(isCanonical: false) }

    /// The text with the keys of all objects sorted by UTF-16 code units, so that equal values have
    /// equal texts.
    public var canonicalText: String { text(isCanonical: true) }

    private func text(isCanonical: Bool) -> String {
        var bytes: [UInt8] = []
        write(to: &bytes, isCanonical: isCanonical)
        return String(decoding: bytes, as: UTF8.self)
    }

    fileprivate func write(to bytes: inout [UInt8], isCanonical: Bool) {
        switch self {
        case .number(let number) where !number.isFinite:
            let sign: EJSON = .number(number.isNaN ? 0 : (number < 0 ? -1 : 1))
            EJSON.writePlain([("$InfNaN", sign)], to: &bytes, isCanonical)
        case .array(let elements):
            EJSON.write(elements, to: &bytes) { $0.write(to: &$1, isCanonical: isCanonical) }
        case .object(let object):
            guard object.looksSpecial else {
                return object.write(to: &bytes, isCanonical: isCanonical)
            }
            bytes.append(contentsOf: "{\"$escape\":".utf8)
            object.write(to: &bytes, isCanonical: isCanonical)
            bytes.append(UInt8(ascii: "}"))
        case .date(let milliseconds):
            bytes.append(contentsOf: "{\"$date\":\(milliseconds)}".utf8)
        case .bytes(let content):
            EJSON.writePlain([("$binary", .string(base64(content)))], to: &bytes, isCanonical)
        case .objectID(let id):
            let fields: [(String, EJSON)] = [
                ("$type", .string("oid")), ("$value", .string(id.hex)),
            ]
            EJSON.writePlain(fields, to: &bytes, isCanonical)
        case .decimal(let text):
            let fields: [(String, EJSON)] = [
                ("$type", .string("Decimal")), ("$value", .string(text)),
            ]
            EJSON.writePlain(fields, to: &bytes, isCanonical)
        case .pattern(let pattern):
            let fields: [(String, EJSON)] = [
                ("$regexp", .string(pattern.source)), ("$flags", .string(pattern.flags)),
            ]
            EJSON.writePlain(fields, to: &bytes, isCanonical)
        case .custom(let custom):
            let fields: [(String, EJSON)] = [
                ("$type", .string(custom.type)), ("$value", custom.value),
            ]
            EJSON.writePlain(fields, to: &bytes, isCanonical)
        case .null, .bool, .number, .string: writePlain(to: &bytes, isCanonical)
        }
    }

    /// Appends the value as plain JSON. Kinds that JSON lacks are written as EJSON.
    private func writePlain(to bytes: inout [UInt8], _ isCanonical: Bool) {
        switch self {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .number(let number) where number.isFinite:
            // JavaScript writes -0 as 0.
            JSONNumber.write(number == 0 ? 0 : number, to: &bytes)
        case .string(let text): JSONString.write(text, to: &bytes)
        case .array(let elements):
            EJSON.write(elements, to: &bytes) { $0.writePlain(to: &$1, isCanonical) }
        case .object(let object):
            EJSON.writePlain(object.fields.map { ($0.name, $0.value) }, to: &bytes, isCanonical)
        case .number, .date, .bytes, .objectID, .decimal, .pattern, .custom:
            write(to: &bytes, isCanonical: isCanonical)
        }
    }

    private static func writePlain(
        _ fields: [(String, EJSON)], to bytes: inout [UInt8], _ isCanonical: Bool
    ) {
        write(fields, to: &bytes, isCanonical) { $0.writePlain(to: &$1, isCanonical) }
    }

    private static func write(
        _ elements: [EJSON], to bytes: inout [UInt8], _ write: (EJSON, inout [UInt8]) -> Void
    ) {
        bytes.append(UInt8(ascii: "["))
        for (index, element) in elements.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            write(element, &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    fileprivate static func write(
        _ fields: [(String, EJSON)], to bytes: inout [UInt8], _ isCanonical: Bool,
        _ write: (EJSON, inout [UInt8]) -> Void
    ) {
        var fields = fields
        if isCanonical { fields.sort { String.orderOfUTF16($0.0, $1.0) < 0 } }
        bytes.append(UInt8(ascii: "{"))
        for (index, field) in fields.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            JSONString.write(field.0, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            write(field.1, &bytes)
        }
        bytes.append(UInt8(ascii: "}"))
    }
}

extension EJSONObject {
    fileprivate func write(to bytes: inout [UInt8], isCanonical: Bool) {
        EJSON.write(fields.map { ($0.name, $0.value) }, to: &bytes, isCanonical) {
            $0.write(to: &$1, isCanonical: isCanonical)
        }
    }

    /// Whether an ordinary object has the keys of a special one.
    fileprivate var looksSpecial: Bool {
        switch count {
        case 1:
            ["$date", "$binary", "$InfNaN", "$escape"].contains { fields[0].name.hasBytes($0) }
        case 2:
            self["$regexp"] != nil && self["$flags"] != nil
                || self["$type"] != nil && self["$value"] != nil
        default: false
        }
    }
}
