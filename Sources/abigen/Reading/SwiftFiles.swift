import Foundation

/// Sources that have annotations.
enum SwiftFiles {
    /// The Swift files of a folder that contain one of the texts, sorted by path.
    static func read(
        _ folder: String, under root: URL, having texts: String...
    ) throws -> [(path: String, lines: [String])] {
        var found: [(path: String, lines: [String])] = []
        let start = root.appendingPathComponent(folder)
        let names = FileManager.default.enumerator(atPath: start.path)
        while let name = names?.nextObject() as? String {
            guard name.hasSuffix(".swift") else { continue }
            let text = try String(contentsOf: start.appendingPathComponent(name), encoding: .utf8)
            guard texts.contains(where: { text.contains($0) }) else { continue }
            found.append(("\(folder)/\(name)", text.components(separatedBy: "\n")))
        }
        return found.sorted { $0.path < $1.path }
    }
}
