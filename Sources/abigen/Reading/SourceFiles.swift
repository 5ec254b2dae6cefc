import Foundation

/// The sources of the symbol graph. The graph lacks the parameter names of closure types and the
/// raw values of enums, so these are read at the symbol's location.
final class SourceFiles {
    private let root: URL
    private var lines: [String: [String]] = [:]

    /// - Parameter root: refusals name files relative to it.
    init(root: URL) {
        self.root = root.resolvingSymlinksInPath()
    }

    func place(of symbol: SymbolGraph.Symbol) throws -> Place {
        guard let location = symbol.location, let uri = URL(string: location.uri) else {
            throw Failure.message("the symbol graph has no location for \(symbol.name)")
        }
        let path = uri.resolvingSymlinksInPath().path
        let prefix = root.path + "/"
        let file = path.hasPrefix(prefix) ? String(path.dropFirst(prefix.count)) : path
        return Place(file: file, line: location.position.line + 1)
    }

    /// The file's text from the line of `place`.
    func text(from place: Place) throws -> String {
        let all = try contents(of: place.file)
        guard place.line >= 1, place.line <= all.count else {
            throw Failure.message("\(place): the file is shorter than the symbol graph says")
        }
        return all[(place.line - 1)...].joined(separator: "\n")
    }

    func contents(of file: String) throws -> [String] {
        if let known = lines[file] { return known }
        let url = URL(fileURLWithPath: file, relativeTo: root)
        guard let text = try? String(contentsOf: url, encoding: .utf8) else {
            throw Failure.message("cannot read \(url.path)")
        }
        let split = text.components(separatedBy: "\n")
        lines[file] = split
        return split
    }
}
