/// Messages as they may be shown in a log: without authorizations, signatures and keys.
package enum PusherRedaction {
    /// Members whose text is left out, also in data that is JSON within a string.
    private static let members = ["auth", "shared_secret"]
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

    /// A character, however JSON has escaped it: `"` can be `\u0022`, too, and in a string within a
    /// string `\"` or `\u005c"`.
    private struct Character {
        var byte: UInt8
        /// How many backslashes precede it, or would if it were not written as a code.
        var level = 0
        var isCode = false
        var end: Int

        private static let longest = 64

        init(in message: UnsafeRawBufferPointer, at start: Int) {
            (byte, end) = (0, start)
            while end < message.count, end - start < Character.longest {
                let unit = SentSecrets.unit(in: message, at: end)
                (byte, end, isCode) = (unit.byte, unit.end, unit.isCode)
                level += unit.backslashes
                guard byte == backslash else { break }
                level += 1
            }
            if isCode { level = max(0, 2 * level - 1) }
        }

        var isBlank: Bool {
            switch byte {
            case 0x20, 0x09, 0x0A, 0x0D: true
            case UInt8(ascii: "n"), UInt8(ascii: "t"), UInt8(ascii: "r"): level > 0 && !isCode
            default: false
            }
        }
    }

    /// The text of a secret member, the quote before whose name begins here.
    private static func value(in message: UnsafeRawBufferPointer, at start: Int) -> Range<Int>? {
        guard message[start] == quote || message[start] == backslash else { return nil }
        var next = Character(in: message, at: start)
        guard next.byte == quote else { return nil }
        func advance() { next = Character(in: message, at: next.end) }
        func skipBlanks() {
            repeat { advance() } while next.isBlank && next.end < message.count
        }
        guard let end = endOfName(in: message, at: next.end) else { return nil }
        next.end = end
        skipBlanks()
        guard next.byte == UInt8(ascii: ":") else { return nil }
        skipBlanks()
        guard next.byte == quote else { return nil }
        let (first, depth) = (next.end, next.level)
        while next.end < message.count {
            let begin = next.end
            advance()
            // Each quote inside the text has more backslashes, and each backslash is doubled.
            if next.byte == quote, next.level % (2 * (depth + 1)) == depth {
                return first..<max(first, next.isCode ? begin : next.end - 1 - depth)
            }
        }
        return first..<message.count
    }

    /// The end of the quote after a member's name, if that is one of a secret.
    private static func endOfName(in message: UnsafeRawBufferPointer, at start: Int) -> Int? {
        for name in members {
            var end = start
            let isFound = (name.utf8 + [quote]).allSatisfy { byte in
                let next = Character(in: message, at: end)
                end = next.end
                return next.byte == byte
            }
            if isFound { return end }
        }
        return nil
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
