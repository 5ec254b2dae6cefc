import Foundation

/// Parses a doc comment: paragraphs, `- Parameter x:`, `- Returns:`, and its "Since 0.1.".
struct DocComment {
    private(set) var documentation = Documentation()
    /// The version in "Since 0.1"; nil without one.
    private(set) var since: String?

    private enum Section {
        case text
        case parameter(Int)
        case returns
    }

    /// - Parameter first: the place of the first line.
    init(lines: [String], at first: Place) throws {
        var section = Section.text
        var newParagraph = true
        for (number, line) in lines.enumerated() {
            let here = Place(file: first.file, line: first.line + number)
            let text = line.trimmingCharacters(in: .whitespaces)
            if text.contains("*/") || text.contains("/*") {
                throw Refusal(here, "a C comment cannot hold '/*' or '*/'")
            }
            if text.isEmpty {
                section = .text
                newParagraph = true
            } else if text.hasPrefix("- ") {
                section = try open(text, at: here)
            } else {
                append(text, to: section, newParagraph: newParagraph)
                newParagraph = false
            }
        }
        try takeSince()
    }

    /// Opens a section at a line that begins with "- ", if the header can express it.
    private mutating func open(_ line: String, at place: Place) throws -> Section {
        guard let colon = line.firstIndex(of: ":") else {
            throw Refusal(place, "the header cannot express a list in a doc comment")
        }
        let words = line[..<colon].dropFirst(2).split(separator: " ")
        let text = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        if words == ["Returns"] {
            documentation.returns = text
            return .returns
        }
        if words.count == 2, words[0] == "Parameter" {
            documentation.parameters.append(.init(name: String(words[1]), text: text))
            return .parameter(documentation.parameters.count - 1)
        }
        throw Refusal(place, "use '- Parameter x:' or '- Returns:', not '\(line[...colon])'")
    }

    private mutating func append(_ text: String, to section: Section, newParagraph: Bool) {
        switch section {
        case .text where newParagraph || documentation.paragraphs.isEmpty:
            documentation.paragraphs.append(text)
        case .text:
            documentation.paragraphs[documentation.paragraphs.count - 1] += " " + text
        case .parameter(let index):
            documentation.parameters[index].text += " " + text
        case .returns:
            documentation.returns = (documentation.returns ?? "") + " " + text
        }
    }

    /// Removes "Since 0.1." from the text: the printers put it last.
    private mutating func takeSince() throws {
        let pattern = #/\s*\bSince ([0-9]+\.[0-9]+)\.?/#
        func take(_ text: inout String) {
            guard let match = text.firstMatch(of: pattern) else { return }
            since = String(match.1)
            text.removeSubrange(match.range)
        }
        for index in documentation.paragraphs.indices { take(&documentation.paragraphs[index]) }
        documentation.paragraphs.removeAll(where: \.isEmpty)
        for index in documentation.parameters.indices {
            take(&documentation.parameters[index].text)
        }
        if var returns = documentation.returns {
            take(&returns)
            documentation.returns = returns
        }
    }
}
