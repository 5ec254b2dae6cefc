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

    /// RFC 8259 §7.
    private static func quoted(_ text: String) -> String {
        var text = text
        return text.withUTF8 { bytes in
            var result = "\""
            // Of the bytes that are not in the result yet.
            var start = 0
            var index = 0
            while index < bytes.count {
                let byte = bytes[index]
                // U+0080 to U+009F have two bytes, of which the first is 0xC2.
                let isLong = byte == 0xC2 && bytes[index + 1] < 0xA0
                let length = isLong ? 2 : 1
                if isLong || byte < 0x20 || byte == 0x22 || byte == 0x5C || byte == 0x7F {
                    result += String(decoding: bytes[start..<index], as: UTF8.self)
                    result += escaped(isLong ? bytes[index + 1] : byte)
                    start = index + length
                }
                index += length
            }
            result += String(decoding: bytes[start...], as: UTF8.self)
            return result + "\""
        }
    }

    /// - Parameter character: below U+0100.
    private static func escaped(_ character: UInt8) -> String {
        switch Unicode.Scalar(character) {
        case "\"": return "\\\""
        case "\\": return "\\\\"
        case "\n": return "\\n"
        case "\r": return "\\r"
        case "\t": return "\\t"
        default:
            let digits = String(character, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
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
