import Foundation

/// The files to which options are printed.
enum OptionFiles {
    static let folders = ["Sources/Session", "Sources/Wire"]

    static func objects(under root: URL) throws -> [OptionObject] {
        let sources = try folders.flatMap {
            try SwiftFiles.read($0, under: root, having: "/// - Option", "/// - Object: ")
        }
        return try OptionSource(files: sources.sorted { $0.path < $1.path }).objects()
    }

    static func files(of objects: [OptionObject], under root: URL) throws -> [Output.File] {
        let errors = try PythonErrors(under: root)
        var files: [Output.File] = []
        for object in objects {
            files.append(
                Output.File(
                    path: try chapter(of: object, under: root) + "+Plain.swift",
                    text: SetterPrinter.print(object)))
            files.append(try region(of: object, under: root))
        }
        let readme = try PythonReadmePrinter(errors: errors).file(objects, under: root)
        return files + (readme.map { [$0] } ?? []) + [
            Output.File(
                path: "Sources/Realtime/PlainOptions.swift",
                text: SwiftOptionsPrinter.applying(objects)),
            Output.File(
                path: "bindings/python/src/librealtime/_core/option_tables.py",
                text: PythonOptionsPrinter.print(objects, errors)),
            Output.File(path: "docs/options.md", text: OptionPagePrinter.print(objects)),
        ]
    }

    /// The path of the file of RealtimeABI with the setters' chapter, without its extension.
    private static func chapter(of object: OptionObject, under root: URL) throws -> String {
        let parts = object.swiftType.components(separatedBy: ".")
        let first = parts.first ?? ""
        let client = first.hasSuffix("Client") ? String(first.dropLast(6)) : first
        let isUsual = ["Options", "Configuration"].contains(parts.last)
        let names =
            isUsual
            ? ["\(client)Options"]
            : [parts.joined(), first, "\(object.subjects.joined())Options"]
        let folder = "Sources/RealtimeABI"
        let found = FileManager.default.enumerator(
            atPath: root.appendingPathComponent(folder).path)
        let files = (found?.compactMap { $0 as? String } ?? []).sorted()
        for name in names {
            for file in files where file.split(separator: "/").last == "\(name).swift" {
                return "\(folder)/\(file.dropLast(6))"
            }
        }
        // An object whose setters are all printed needs no file by hand.
        if isUsual { return "\(folder)/\(client)Options" }
        throw Failure.message("RealtimeABI has no file for \(object.swiftType)")
    }

    /// The file of Realtime with a region for the object's options, after printing the region.
    private static func region(of object: OptionObject, under root: URL) throws -> Output.File {
        let folder = "Sources/Realtime"
        let opening = SwiftOptionsPrinter.opening(object)
        for name in try FileManager.default.subpathsOfDirectory(
            atPath: root.appendingPathComponent(folder).path
        ).sorted() where name.hasSuffix(".swift") {
            let path = "\(folder)/\(name)"
            let text = try String(
                contentsOf: root.appendingPathComponent(path), encoding: .utf8)
            var lines = text.components(separatedBy: "\n")
            guard
                let first = lines.firstIndex(where: { $0.hasSuffix(opening) }),
                let last = lines[first...].firstIndex(where: {
                    $0.hasSuffix(SwiftOptionsPrinter.closing)
                })
            else { continue }
            let indent = String(lines[first].prefix { $0 == " " })
            lines.replaceSubrange(
                (first + 1)..<last, with: SwiftOptionsPrinter.properties(object, indent: indent))
            return Output.File(path: path, text: lines.joined(separator: "\n"))
        }
        throw Failure.message("no file of \(folder) has the line '\(opening)'")
    }
}
