import Foundation

/// Parameters and result of a function or closure type, as Swift text.
struct Signature: Equatable {
    struct Argument: Equatable {
        var name: String
        var type: String
    }

    var arguments: [Argument]
    /// `Void` if there is none.
    var result: String

    /// Parses `(_ a: A, _ b: B) -> R` at the start of `text`, and ignores everything from `{` on.
    init(parsing text: Substring, at place: Place) throws {
        guard text.first == "(", let close = Signature.closing(of: text) else {
            throw Refusal(place, "no parameter list found")
        }
        let inside = text[text.index(after: text.startIndex)..<close]
        arguments = try Signature.split(inside).map { try Signature.argument($0, at: place) }
        let rest = text[text.index(after: close)...]
            .prefix { $0 != "{" }
            .drop { $0.isWhitespace }
        guard rest.hasPrefix("->") else {
            let word = rest.prefix { $0.isLetter }
            if word == "throws" || word == "async" {
                throw Refusal(place, "C has no '\(word)'")
            }
            result = "Void"
            return
        }
        let type = rest.dropFirst(2).drop { $0.isWhitespace }.prefix { $0 != "\n" }
        result = type.trimmingCharacters(in: .whitespaces)
    }

    /// The index of the parenthesis that closes the first one in `text`.
    private static func closing(of text: Substring) -> Substring.Index? {
        var depth = 0
        for index in text.indices {
            switch text[index] {
            case "(": depth += 1
            case ")":
                depth -= 1
                if depth == 0 { return index }
            default: break
            }
        }
        return nil
    }

    /// Splits at commas outside brackets. The `>` of `->` closes no bracket.
    private static func split(_ list: Substring) -> [Substring] {
        var parts: [Substring] = []
        var start = list.startIndex
        var depth = 0
        var before: Character = " "
        for index in list.indices {
            let character = list[index]
            switch character {
            case "(", "[", "<": depth += 1
            case ")", "]": depth -= 1
            case ">" where before != "-": depth -= 1
            case "," where depth == 0:
                parts.append(list[start..<index])
                start = list.index(after: index)
            default: break
            }
            before = character
        }
        parts.append(list[start...])
        return parts.filter { !$0.allSatisfy(\.isWhitespace) }
    }

    private static func argument(_ text: Substring, at place: Place) throws -> Argument {
        guard let colon = text.firstIndex(of: ":") else {
            throw Refusal(place, "the parameter '\(trimmed(text))' has no name")
        }
        let words = text[..<colon].split(whereSeparator: \.isWhitespace)
        let type = trimmed(text[text.index(after: colon)...])
        guard let name = words.last, name != "_" else {
            throw Refusal(place, "a parameter of type '\(type)' has no name")
        }
        guard words.count == 2, words[0] == "_" else {
            throw Refusal(place, "write '_ \(name)': C has no argument labels")
        }
        if type.contains("=") {
            throw Refusal(place, "C has no default values: '\(name)'")
        }
        return Argument(name: String(name), type: type)
    }

    private static func trimmed(_ text: Substring) -> String {
        text.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
