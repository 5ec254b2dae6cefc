import Foundation

/// What an option is: which values it takes, and how each language spells them.
enum OptionKind: Equatable {
    case flag
    /// A whole number within a range; without an upper end, up to that of the C type.
    case count(least: Int, most: Int?)
    /// A size in bytes. Without a least size, 0 is no limit.
    case bytes(least: Int?)
    /// A time; 0 is one, too.
    case delay
    /// A time after which something ends; 0 is no limit.
    case limit
    /// A text; an empty one is none.
    case text

    init(_ words: [String]) throws {
        switch (words.first, words.count) {
        case ("flag", 1): self = .flag
        case ("delay", 1): self = .delay
        case ("limit", 1): self = .limit
        case ("text", 1): self = .text
        case ("bytes", 1): self = .bytes(least: nil)
        case ("bytes", 2):
            guard let range = OptionKind.range(words[1]), range.most == nil else { fallthrough }
            self = .bytes(least: range.least)
        case ("count", 2):
            guard let range = OptionKind.range(words[1]) else { fallthrough }
            self = .count(least: range.least, most: range.most)
        default:
            throw Unreadable("'\(words.joined(separator: " "))' is no kind of an option")
        }
    }

    private static func range(_ text: String) -> (least: Int, most: Int?)? {
        let parts = text.replacingOccurrences(of: "_", with: "").components(separatedBy: "...")
        guard parts.count == 2, let least = Int(parts[0]) else { return nil }
        if parts[1].isEmpty { return (least, nil) }
        guard let most = Int(parts[1]) else { return nil }
        return (least, most)
    }

    var isTime: Bool { self == .delay || self == .limit }
}

/// The default of an option, as its source says it.
enum OptionDefault: Equatable {
    case flag(Bool)
    case number(Int)
    case milliseconds(Int)
    case none

    /// - Parameter source: a literal of Swift's, a shift of one, or a `Duration`.
    init(_ source: String) throws {
        let text = source.replacingOccurrences(of: "_", with: "")
        if text == "nil" {
            self = .none
        } else if let flag = Bool(text) {
            self = .flag(flag)
        } else if let number = Int(text) {
            self = .number(number)
        } else if let match = text.wholeMatch(of: /(\d+) << (\d+)/),
            let value = Int(match.1), let bits = Int(match.2)
        {
            self = .number(value << bits)
        } else if text.wholeMatch(of: /(Duration)?\.zero/) != nil {
            self = .milliseconds(0)
        } else if let match = text.wholeMatch(of: /(?:Duration)?\.(milli)?seconds\((\d+)\)/),
            let value = Int(match.2)
        {
            self = .milliseconds(match.1 == nil ? value * 1000 : value)
        } else {
            throw Unreadable("the default '\(source)' is none that abigen reads")
        }
    }
}

extension OptionDefault {
    /// As a person reads it in C's documentation; times are in milliseconds there.
    var words: String {
        switch self {
        case .flag(let flag): "\(flag)"
        case .number(let number): OptionDefault.size(number)
        case .milliseconds(let time): OptionDefault.grouped(time)
        case .none: "none"
        }
    }

    /// As Swift's and Python's documentation say it.
    var plainWords: String {
        guard case .milliseconds(let time) = self else { return words }
        return time % 1000 == 0
            ? "\(OptionDefault.grouped(time / 1000)) s" : "\(OptionDefault.grouped(time)) ms"
    }

    /// As an expression of Swift's.
    var swift: String {
        switch self {
        case .flag(let flag): "\(flag)"
        case .number(let number): OptionDefault.shifted(number, " << ")
        case .milliseconds(0): ".zero"
        case .milliseconds(let time) where time % 1000 == 0: ".seconds(\(time / 1000))"
        case .milliseconds(let time): ".milliseconds(\(time))"
        case .none: "nil"
        }
    }

    /// As an expression of Python's; times are in seconds there.
    var python: String {
        switch self {
        case .flag(let flag): flag ? "True" : "False"
        case .number(let number) where number >= 1024 && number & (number - 1) == 0:
            "2**\(number.trailingZeroBitCount)"
        case .number(let number): "\(number)"
        case .milliseconds(let time) where time % 1000 == 0: "\(time / 1000)"
        case .milliseconds(let time): "\(Double(time) / 1000)"
        case .none: "None"
        }
    }

    var isZero: Bool { self == .number(0) || self == .milliseconds(0) }

    private static func shifted(_ number: Int, _ sign: String) -> String {
        for bits in [20, 10] where number >= 1 << bits && number % (1 << bits) == 0 {
            return "\(number >> bits)\(sign)\(bits)"
        }
        return "\(number)"
    }

    private static func size(_ number: Int) -> String {
        if number >= 1 << 20, number % (1 << 20) == 0 { return "\(number >> 20) MiB" }
        if number >= 1 << 10, number % (1 << 10) == 0 { return "\(number >> 10) KiB" }
        return grouped(number)
    }

    static func grouped(_ number: Int) -> String {
        var text = "\(number)"
        var index = text.count - 3
        while index > 0 {
            text.insert(",", at: text.index(text.startIndex, offsetBy: index))
            index -= 3
        }
        return text
    }
}

/// What an annotation says and abigen does not understand. The reader of the line adds its place.
struct Unreadable: Error {
    var message: String

    init(_ message: String) { self.message = message }
}
