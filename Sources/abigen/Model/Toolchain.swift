import Foundation

/// The programs abigen runs.
enum Toolchain {
    /// Builds RealtimeABI and extracts its symbol graph, like `swift package dump-symbol-graph`,
    /// which does so for every target and its tests. Uses the folder and the flags of `swift build`
    /// and `swift test`.
    static func symbolGraph(of root: URL) throws -> URL {
        let build = ["swift", "build", "--package-path", root.path]
        guard try run(build + ["--target", "RealtimeABI"], output: .standardError) == 0 else {
            throw Failure.message("RealtimeABI does not build")
        }
        let products = URL(fileURLWithPath: try output(of: build + ["--show-bin-path"]))
        let folder = products.appendingPathComponent("symbolgraph", isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        var arguments = [
            "swift", "symbolgraph-extract", "-module-name", "RealtimeABI",
            "-target", try target(), "-I", products.appendingPathComponent("Modules").path,
            "-minimum-access-level", "public", "-skip-synthesized-members",
            "-output-dir", folder.path,
        ]
        for map in try moduleMaps(in: products) {
            arguments += ["-Xcc", "-fmodule-map-file=\(map)"]
        }
        guard try run(arguments, output: .standardError) == 0 else {
            throw Failure.message("the symbol graph of RealtimeABI cannot be extracted")
        }
        return folder.appendingPathComponent("RealtimeABI.symbols.json")
    }

    /// Runs a program in PATH; returns its exit status.
    @discardableResult
    static func run(_ arguments: [String], output: FileHandle = .standardOutput) throws -> Int32 {
        let process = process(arguments)
        process.standardOutput = output
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }

    /// The output of a program, without the line end.
    private static func output(of arguments: [String]) throws -> String {
        let process = process(arguments)
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let data = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Failure.message("'\(arguments.joined(separator: " "))' failed")
        }
        return String(decoding: data, as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private static func process(_ arguments: [String]) -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        return process
    }

    /// The module maps of the C targets, which SwiftPM writes beside their objects.
    private static func moduleMaps(in products: URL) throws -> [String] {
        try FileManager.default
            .contentsOfDirectory(at: products, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "build" }
            .map { $0.appendingPathComponent("module.modulemap").path }
            .filter { FileManager.default.fileExists(atPath: $0) }
            .sorted()
    }

    private static func target() throws -> String {
        struct Information: Decodable {
            struct Target: Decodable { var triple: String }
            var target: Target
        }
        let json = try output(of: ["swiftc", "-print-target-info"])
        return try JSONDecoder().decode(Information.self, from: Data(json.utf8)).target.triple
    }
}
