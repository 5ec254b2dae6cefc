import Realtime

/// A line of --json: an object with "event" first, and members in the order they were added.
struct JSONLine {
    private(set) var members: String

    init(_ event: String) { members = "\"event\":\(JSONLine.quoted(event))" }

    var text: String { "{\(members)}" }

    /// Adds a member; leaves it out if the value is nil.
    func with(_ name: String, _ value: String?) -> JSONLine {
        adding(name, value.map(JSONLine.quoted))
    }

    /// Adds the text of an error, which names flags of the tool.
    func with(message: String?) -> JSONLine {
        with("message", message.map { PEM.hidden(in: FlagNames.put(into: $0)) })
    }

    func with(_ name: String, _ value: Int?) -> JSONLine { adding(name, value.map(String.init)) }

    func with(_ name: String, _ value: Bool?) -> JSONLine { adding(name, value.map(String.init)) }

    /// Adds an array of pairs, because names can occur more than once.
    func with(_ name: String, _ pairs: [(String, String)]) -> JSONLine {
        let items = pairs.map { "[\(JSONLine.quoted($0.0)),\(JSONLine.quoted($0.1))]" }
        return adding(name, "[\(items.joined(separator: ","))]")
    }

    func with(_ name: String, _ texts: [String]?) -> JSONLine {
        adding(name, texts.map { "[\($0.map(JSONLine.quoted).joined(separator: ","))]" })
    }

    func with(_ name: String, _ value: EJSON?) -> JSONLine { adding(name, value?.text) }

    /// Adds a time in milliseconds.
    func with(_ name: String, _ value: Duration?) -> JSONLine {
        adding(name, value.map { String(Int64(($0 / .microseconds(1)).rounded()) / 1000) })
    }

    private func adding(_ name: String, _ value: String?) -> JSONLine {
        guard let value else { return self }
        var copy = self
        copy.members += ",\(JSONLine.quoted(name)):\(value)"
        return copy
    }

    /// RFC 8259 §7. What a terminal would obey or a reader not see is escaped, too.
    private static func quoted(_ text: String) -> String {
        let scalars = text.unicodeScalars
        var result = "\""
        // Of what is not in the result yet.
        var start = scalars.startIndex
        var index = start
        while index < scalars.endIndex {
            let scalar = scalars[index]
            let next = scalars.index(after: index)
            if scalar == "\"" || scalar == "\\" || scalar.isHidden {
                result.unicodeScalars += scalars[start..<index]
                result += escaped(scalar)
                start = next
            }
            index = next
        }
        result.unicodeScalars += scalars[start...]
        return result + "\""
    }

    private static func escaped(_ scalar: Unicode.Scalar) -> String {
        switch scalar {
        case "\"": return "\\\""
        case "\\": return "\\\\"
        case "\n": return "\\n"
        case "\r": return "\\r"
        case "\t": return "\\t"
        default:
            return UTF16.encode(scalar).map { units in
                units.reduce(into: "") { result, unit in
                    let digits = String(unit, radix: 16)
                    result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            } ?? ""
        }
    }

    /// RFC 4648 §4.
    static func base64(_ bytes: [UInt8]) -> String {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var result: [UInt8] = []
        result.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for place in 0..<4 {
                let isFilled = place <= group.count
                result.append(
                    isFilled ? digits[bits >> (18 - 6 * place) & 63] : UInt8(ascii: "="))
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
