import Foundation

/// The generated files, and whether they are up to date in the tree.
enum Output {
    struct File {
        var path: String
        var text: String
    }

    /// Writes the files that differ, so that a file's date shows when it changed.
    static func write(_ files: [File], under root: URL) throws {
        for file in files where current(file, under: root) != file.text {
            let url = root.appendingPathComponent(file.path)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try file.text.write(to: url, atomically: true, encoding: .utf8)
            print("wrote \(file.path)")
        }
    }

    /// Shows how the tree differs from newly generated files.
    static func areUpToDate(_ files: [File], under root: URL) throws -> Bool {
        let stale = files.filter { current($0, under: root) != $0.text }
        for file in stale {
            let fresh = FileManager.default.temporaryDirectory
                .appendingPathComponent("abigen-\(UUID().uuidString)")
            try file.text.write(to: fresh, atomically: true, encoding: .utf8)
            defer { try? FileManager.default.removeItem(at: fresh) }
            let tree = root.appendingPathComponent(file.path)
            let exists = FileManager.default.fileExists(atPath: tree.path)
            try Toolchain.run([
                "diff", "-u", "--label", "\(file.path) (tree)", "--label",
                "\(file.path) (generated)", exists ? tree.path : "/dev/null", fresh.path,
            ])
        }
        if !stale.isEmpty { print("not up to date: run 'swift run abigen' and commit") }
        return stale.isEmpty
    }

    private static func current(_ file: File, under root: URL) -> String? {
        try? String(contentsOf: root.appendingPathComponent(file.path), encoding: .utf8)
    }
}
