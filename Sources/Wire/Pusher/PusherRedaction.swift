/// Messages as they may be shown in a log: without authorizations, signatures and keys.
package enum PusherRedaction {
    /// Members whose text is left out, also in data that is JSON within a string.
    private static let members: [StaticString] = ["auth", "shared_secret"]
    /// So many hexadecimal digits in a row may be a signature, wherever they are.
    private static let digitsOfSignature = 64
    private static let quote = UInt8(ascii: "\"")
    private static let backslash = UInt8(ascii: "\\")

    package static func text(of message: String) -> String {
        var message = message
        return message.withUTF8 { text(of: UnsafeRawBufferPointer($0)) }
    }

    package static func text(of message: UnsafeRawBufferPointer) -> String {
        String(decoding: bytes(of: message), as: UTF8.self)
    }

    package static func bytes(of message: [UInt8]) -> [UInt8] {
        message.withUnsafeBytes { bytes(of: $0) }
    }

    package static func bytes(of message: UnsafeRawBufferPointer) -> [UInt8] {
        var shown: [UInt8] = []
        var index = 0
        while index < message.count {
            let secret = value(in: message, at: index) ?? signature(in: message, at: index)
            guard let secret else {
                shown.append(message[index])
                index += 1
                continue
            }
            shown.append(contentsOf: message[index..<secret.lowerBound])
            shown.append(contentsOf: "…".utf8)
            index = secret.upperBound
        }
        return shown
    }

    /// The text of a secret member whose name begins here.
    private static func value(in message: UnsafeRawBufferPointer, at start: Int) -> Range<Int>? {
        guard start > 0, message[start - 1] == quote else { return nil }
        let rest = UnsafeRawBufferPointer(rebasing: message[start...])
        guard let name = members.first(where: { rest.beginsWithWord($0) }) else { return nil }
        // The end of the name, a colon, and the beginning of the text.
        var index = start + name.utf8CodeUnitCount
        var quotes = 0
        var colons = 0
        var depth = 0
        while index < message.count, quotes < 2 {
            switch message[index] {
            case quote:
                quotes += 1
                guard quotes == 1 || colons == 1 else { return nil }
            case UInt8(ascii: ":"): colons += 1
            case backslash: if colons == 1 { depth += 1 }
            case 0x20, 0x09, 0x0A, 0x0D: break
            default: return nil
            }
            index += 1
        }
        guard quotes == 2 else { return nil }
        let first = index
        var backslashes = 0
        while index < message.count {
            // Each quote inside the text has more backslashes, and each backslash is doubled.
            if message[index] == quote, backslashes % (2 * (depth + 1)) == depth { break }
            backslashes = message[index] == backslash ? backslashes + 1 : 0
            index += 1
        }
        return first..<max(first, index - depth)
    }

    private static func signature(
        in message: UnsafeRawBufferPointer, at start: Int
    ) -> Range<Int>? {
        guard isDigit(message[start]), start == 0 || !isDigit(message[start - 1]) else {
            return nil
        }
        var end = start
        while end < message.count, isDigit(message[end]) { end += 1 }
        return end - start >= digitsOfSignature ? start..<end : nil
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }
}
