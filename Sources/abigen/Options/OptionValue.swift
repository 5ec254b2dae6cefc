import Foundation

/// The kind of an option: its values, and their spelling in each language.
enum OptionKind: Equatable {
    case flag
    /// A whole number in a range; without an upper end, up to that of the C type.
    case count(least: Int, most: Int?)
    /// A number that need not be whole.
    case real(least: Int, most: Int)
    /// A size in bytes. Without a minimum, 0 means no limit.
    case bytes(least: Int?, most: Int?)
    /// A time; 0 is a valid one.
    case delay
    /// A time after which something ends, at most this many milliseconds; 0 means no limit.
    case limit(most: Int?)
    /// A text; an empty one means none.
    case text
    /// The path of a file, of at most this many bytes.
    case path(most: Int?)
    /// One of several values that have names.
    case choice(OptionChoice)
    /// Headers of requests, with or without setters for credentials.
    case headers(credentials: Bool)
    /// Texts that are added one by one, and C's words for a refused one. The configuration has a
    /// function `addSafeName` for a property `safeNames`.
    case list(refusal: String)
    /// How connections are made.
    case network
    /// Delays between attempts.
    case backoff
    // Derived from the kinds above.
    case basicAuth
    case bearerToken
    case reachability

    init(_ words: [String]) throws {
        switch (words.first, words.count) {
        case ("flag", 1): self = .flag
        case ("delay", 1): self = .delay
        case ("limit", 1): self = .limit(most: nil)
        case ("limit", 2):
            guard let range = OptionKind.range(words[1]), range.least == 0 else { fallthrough }
            self = .limit(most: range.most)
        case ("text", 1): self = .text
        case ("path", 1): self = .path(most: nil)
        case ("path", 2):
            guard let range = OptionKind.range(words[1]), range.least == 0 else { fallthrough }
            self = .path(most: range.most)
        case ("choice", 4...): self = .choice(OptionChoice(words))
        case ("headers", 1): self = .headers(credentials: false)
        case ("headers", 2) where words[1] == "credentials": self = .headers(credentials: true)
        case ("list", 2...): self = .list(refusal: words.dropFirst().joined(separator: " "))
        case ("network", 1): self = .network
        case ("backoff", 1): self = .backoff
        case ("real", 2):
            guard let range = OptionKind.range(words[1]), let most = range.most else { fallthrough }
            self = .real(least: range.least, most: most)
        case ("bytes", 1): self = .bytes(least: nil, most: nil)
        case ("bytes", 2):
            guard let range = OptionKind.range(words[1]) else { fallthrough }
            self = .bytes(least: range.least, most: range.most)
        case ("count", 2):
            guard let range = OptionKind.range(words[1]) else { fallthrough }
            self = .count(least: range.least, most: range.most)
        default:
            throw Unreadable("'\(words.joined(separator: " "))' is not a kind of option")
        }
    }

    private static func range(_ text: String) -> (least: Int, most: Int?)? {
        let parts = text.replacingOccurrences(of: "_", with: "").components(separatedBy: "...")
        guard parts.count == 2, let least = Int(parts[0]) else { return nil }
        if parts[1].isEmpty { return (least, nil) }
        guard let most = Int(parts[1]) else { return nil }
        return (least, most)
    }

    /// Whether it is a single value, which all printers can handle.
    var isPlain: Bool {
        switch self {
        case .headers, .list, .network, .backoff, .basicAuth, .bearerToken, .reachability: false
        default: true
        }
    }

    var isTime: Bool {
        switch self {
        case .delay, .limit: true
        default: false
        }
    }
}

/// The values of an option that have names: `choice C_TYPE C_PREFIX SWIFT_TYPE CASE…`. In Python a
/// case is a text, or the VALUE in `CASE=VALUE`.
struct OptionChoice: Equatable {
    struct Case: Equatable {
        var swift: String
        var constant: String
        var python: String
    }

    var cType: String
    var prefix: String
    var swiftType: String
    var cases: [Case]

    init(_ words: [String]) {
        (cType, prefix, swiftType) = (words[1], words[2], words[3])
        cases = words.dropFirst(4).map { word in
            let parts = word.components(separatedBy: "=")
            let snake = parts[0].replacing(/[A-Z]/) { "_\($0.output.lowercased())" }
            return Case(
                swift: parts[0], constant: snake.uppercased(),
                python: parts.count == 2 ? parts[1] : "\"\(snake)\"")
        }
    }

    func find(_ name: String) -> Case? { cases.first { $0.swift == name } }

    /// "RT_TLS_V1_2 or RT_TLS_V1_3"
    var constants: String {
        let names = cases.map { "\(prefix)_\($0.constant)" }
        return names.dropLast().joined(separator: ", ") + " or " + (names.last ?? "")
    }
}

/// The default of an option, read from its source.
enum OptionDefault: Equatable {
    case flag(Bool)
    case number(Int)
    case real(Double)
    case milliseconds(Int)
    /// A case of an enum.
    case named(String)
    case none

    /// - Parameter source: a Swift literal, a shift of one, or a `Duration`.
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
        } else if let number = Double(text) {
            self = .real(number)
        } else if let match = source.wholeMatch(of: /(?:\w+\.)+(\w+)/) {
            self = .named(String(match.1))
        } else {
            throw Unreadable("abigen cannot read the default '\(source)'")
        }
    }
}

extension OptionDefault {
    /// The text for C's documentation, with times in milliseconds.
    var words: String {
        switch self {
        case .flag(let flag): "\(flag)"
        case .number(let number): OptionDefault.size(number)
        case .real(let number): OptionDefault.plain(number)
        case .milliseconds(let time): OptionDefault.grouped(time)
        case .named(let name): name
        case .none: "none"
        }
    }

    /// The text for Swift's and Python's documentation.
    var plainWords: String {
        guard case .milliseconds(let time) = self else { return words }
        return time % 1000 == 0
            ? "\(OptionDefault.grouped(time / 1000)) s" : "\(OptionDefault.grouped(time)) ms"
    }

    /// A Swift expression.
    var swift: String {
        switch self {
        case .flag(let flag): "\(flag)"
        case .number(let number): OptionDefault.shifted(number, " << ")
        case .real(let number): "\(number)"
        case .named(let name): name
        case .milliseconds(0): ".zero"
        case .milliseconds(let time) where time % 1000 == 0: ".seconds(\(time / 1000))"
        case .milliseconds(let time): ".milliseconds(\(time))"
        case .none: "nil"
        }
    }

    /// A Python expression, with times in seconds.
    var python: String {
        switch self {
        case .flag(let flag): flag ? "True" : "False"
        case .number(let number) where number >= 1024 && number & (number - 1) == 0:
            "2**\(number.trailingZeroBitCount)"
        case .number(let number): "\(number)"
        case .real(let number): OptionDefault.plain(number)
        case .named(let name): name
        case .milliseconds(let time) where time % 1000 == 0: "\(time / 1000)"
        case .milliseconds(let time): "\(Double(time) / 1000)"
        case .none: "None"
        }
    }

    /// The time in Python's default, which is a number of seconds.
    var ofSeconds: OptionDefault {
        switch self {
        case .number(let seconds): .milliseconds(seconds * 1000)
        case .real(let seconds): .milliseconds(Int((seconds * 1000).rounded()))
        default: self
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

    private static func plain(_ number: Double) -> String {
        number == number.rounded() ? "\(Int(number))" : "\(number)"
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

/// An annotation that abigen does not understand. The reader of the line adds its place.
struct Unreadable: Error {
    var message: String

    init(_ message: String) { self.message = message }
}
