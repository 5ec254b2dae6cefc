import Foundation

/// Generates the C interface: reads the symbol graph and the sources, writes the header and the
/// tables.
@main
enum Abigen {
    static let help = """
        OVERVIEW: Generates the interface of librealtime from its sources.

        From the annotated options of Session: C's setters, Swift's options, Python's table of
        options and docs/options.md. From the annotated callbacks of RealtimeABI: their setters.
        From all of RealtimeABI: include/realtime.abi.json (the model), include/realtime.h and
        bindings/python/src/librealtime/_core/abi.py. Without --symbol-graph it builds RealtimeABI
        and extracts the symbol graph.

        USAGE: abigen [--check] [--root <folder>] [--symbol-graph <file>]

        OPTIONS:
          --check                 Write nothing; show the differences, and exit with 1 if any.
          --root <folder>         The package's folder (default: the current one).
          --symbol-graph <file>   RealtimeABI.symbols.json, if it already exists.
          --help                  Show this text.

        EXIT: 0 done or up to date; 1 a file differs, or the interface is invalid; 2 wrong usage.
        """

    static func main() {
        let options: Options
        do {
            options = try Options(CommandLine.arguments.dropFirst())
        } catch {
            say("\(error)\n\(help)")
            exit(2)
        }
        if options.help {
            print(help)
            return
        }
        do {
            // First the files from which the interface is built.
            let root = options.root
            let objects = try OptionFiles.objects(under: root)
            let callbacks = try CallbackPrinter.files(under: root)
            try finish(
                OptionFiles.files(of: objects, under: root) + callbacks.files, options)
            var interface = try interface(options, callbacks.source)
            try interface.add(objects)
            try finish(files(for: interface), options)
        } catch {
            say("\(error)")
            exit(1)
        }
    }

    /// Writes the files, or checks that the tree has them in this form.
    private static func finish(_ files: [Output.File], _ options: Options) throws {
        if options.check {
            guard try Output.areUpToDate(files, under: options.root) else { exit(1) }
        } else {
            try Output.write(files, under: options.root)
        }
    }

    private static func interface(
        _ options: Options, _ callbacks: CallbackSource
    ) throws -> Interface {
        let file = try options.symbolGraph ?? Toolchain.symbolGraph(of: options.root)
        let sources = SourceFiles(root: options.root)
        return try InterfaceReader.read(
            SymbolGraph(contentsOf: file), sources: sources,
            structs: structs(under: options.root, from: sources), callbacks: callbacks,
            library: "realtime", version: version(from: sources))
    }

    private static func files(for interface: Interface) throws -> [Output.File] {
        [
            Output.File(path: "include/realtime.abi.json", text: try ModelPrinter.print(interface)),
            Output.File(path: "include/realtime.h", text: HeaderPrinter.print(interface)),
            Output.File(
                path: "bindings/python/src/librealtime/_core/abi.py",
                text: PythonPrinter.print(interface)),
        ]
    }

    /// The structs of all headers that are named for them.
    private static func structs(
        under root: URL, from sources: SourceFiles
    ) throws -> [StructReader.Found] {
        let folder = "Sources/CShims/include"
        let names = try FileManager.default.contentsOfDirectory(
            atPath: root.appendingPathComponent(folder).path)
        return try names.filter { $0.hasPrefix("rt_types") }.sorted()
            .flatMap { try StructReader.read("\(folder)/\($0)", from: sources) }
    }

    /// The file VERSION alone has the version.
    private static func version(from sources: SourceFiles) throws -> String {
        let text = try sources.contents(of: "VERSION").first ?? ""
        guard text.wholeMatch(of: /[0-9]+\.[0-9]{1,2}\.[0-9]{1,2}/) != nil else {
            throw Failure.message("VERSION must hold major.minor.patch, not '\(text)'")
        }
        return text
    }

    private static func say(_ text: String) {
        FileHandle.standardError.write(Data((text + "\n").utf8))
    }
}

/// The command line.
struct Options {
    var check = false
    var help = false
    var root = URL(fileURLWithPath: FileManager.default.currentDirectoryPath)
    var symbolGraph: URL?

    init(_ arguments: ArraySlice<String>) throws {
        var rest = arguments
        while let argument = rest.popFirst() {
            switch argument {
            case "--check": check = true
            case "--help", "-h": help = true
            case "--root": root = try Options.path(after: argument, &rest)
            case "--symbol-graph": symbolGraph = try Options.path(after: argument, &rest)
            default: throw Failure.message("unknown argument '\(argument)'")
            }
        }
    }

    private static func path(after option: String, _ rest: inout ArraySlice<String>) throws -> URL {
        guard let path = rest.popFirst() else {
            throw Failure.message("\(option) needs a path")
        }
        return URL(fileURLWithPath: path)
    }
}
