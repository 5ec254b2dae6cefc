import Foundation

/// Prints the tables of plain options in Python's README: one row per option, with the first
/// sentence of its documentation.
struct PythonReadmePrinter {
    static let path = "bindings/python/README.md"

    var errors: PythonErrors

    /// The README after printing its regions; nil if it has none.
    func file(_ objects: [OptionObject], under root: URL) throws -> Output.File? {
        let url = root.appendingPathComponent(PythonReadmePrinter.path)
        guard FileManager.default.fileExists(atPath: url.path) else { return nil }
        let text = try String(contentsOf: url, encoding: .utf8)
        var lines = text.components(separatedBy: "\n")
        for object in objects {
            let opening = "<!-- abigen: the options of \(object.configuration) -->"
            guard
                let first = lines.firstIndex(of: opening),
                let last = lines[first...].firstIndex(of: "<!-- abigen: end -->")
            else { continue }
            lines.replaceSubrange((first + 1)..<last, with: table(object))
        }
        return Output.File(path: PythonReadmePrinter.path, text: lines.joined(separator: "\n"))
    }

    private func table(_ object: OptionObject) -> [String] {
        let rows = object.options.compactMap { option -> String? in
            guard let name = option.pythonName else { return nil }
            let prose = OptionWords.prose(option, of: object, in: .python(errors))
            let first = prose.firstMatch(of: /^.*?\.(?= [A-Z]|$)/).map { String($0.0) } ?? prose
            let sentence = first.replacing("``", with: "`")
            return "| `\(name)` | \(initial(option)) | \(sentence) |"
        }
        return ["", "| option | default | |", "|---|---|---|"] + rows + [""]
    }

    /// The default, with its unit.
    private func initial(_ option: Option) -> String {
        if option.isUnlimitedByZero, option.pythonInitial.isZero { return "None" }
        let words = option.pythonWords
        if option.kind.isTime { return "\(words) s" }
        guard case .choice(let choice) = option.kind else { return words }
        let others = choice.cases.map(\.python).filter { $0 != words }
        return "`\(words)`, or \(others.map { "`\($0)`" }.joined(separator: ", "))"
    }
}
