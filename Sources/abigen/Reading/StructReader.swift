import Foundation

/// Reads the plain structs that C and Swift share from their C header: a @convention(c) type cannot
/// contain Swift structs. The form is fixed: `///` comments, one `type name;` per line.
enum StructReader {
    struct Found {
        var structure: Structure
        var place: Place
    }

    static func read(_ file: String, from sources: SourceFiles) throws -> [Found] {
        var found: [Found] = []
        var open: Found?
        var comment: [String] = []
        var refusals: [Refusal] = []
        for (index, line) in try sources.contents(of: file).enumerated() {
            let place = Place(file: file, line: index + 1)
            let text = line.trimmingCharacters(in: .whitespaces)
            if text.hasPrefix("///") {
                comment.append(String(text.dropFirst(3)).trimmingCharacters(in: .whitespaces))
                continue
            }
            do {
                let first = Place(file: file, line: place.line - comment.count)
                let doc = try DocComment(lines: comment, at: first)
                if let match = text.firstMatch(of: /^typedef struct (\w+) \{$/) {
                    open = Found(
                        structure: try begin(String(match.1), doc, at: place), place: place)
                } else if let current = open, text == "} \(current.structure.name);" {
                    found.append(current)
                    open = nil
                } else if open != nil {
                    open?.structure.fields.append(try field(text, doc, at: place))
                }
            } catch let refusal as Refusal {
                refusals.append(refusal)
            }
            comment = []
        }
        if let open { refusals.append(Refusal(open.place, "this struct does not end")) }
        guard refusals.isEmpty else { throw Failure.refused(refusals) }
        return found
    }

    private static func begin(
        _ name: String, _ doc: DocComment, at place: Place
    ) throws -> Structure {
        guard let since = doc.since else {
            throw Refusal(place, "the doc comment of '\(name)' has no 'Since'")
        }
        return Structure(
            name: name, chapter: "", documentation: doc.documentation, since: since)
    }

    private static func field(
        _ text: String, _ doc: DocComment, at place: Place
    ) throws -> Structure.Field {
        guard let match = text.firstMatch(of: /^(const )?(\w+) (\*?)(\w+);$/) else {
            throw Refusal(place, "write a field as 'type name;' on a line of its own")
        }
        guard !doc.documentation.paragraphs.isEmpty else {
            throw Refusal(place, "the field '\(match.4)' has no doc comment")
        }
        let type = CType(
            base: String(match.2), pointers: match.3.count, constant: match.1 != nil)
        return Structure.Field(
            name: String(match.4), type: type, documentation: doc.documentation)
    }
}
