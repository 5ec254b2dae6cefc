import Foundation

/// Prints the C interface: symbol graph and sources in, header and tables out.
@main
enum Abigen {
    static let help = """
        OVERVIEW: Prints what is said once in the sources of librealtime.

        From the annotated options of Session: C's setters, Swift's options, Python's table of
        options and docs/options.md. From RealtimeABI: include/realtime.abi.json (the model),
        include/realtime.h and bindings/python/src/librealtime/_core/abi.py. Without
        --symbol-graph it builds RealtimeABI and has the compiler extract the symbol graph.

        USAGE: abigen [--check] [--root <folder>] [--symbol-graph <file>]

        OPTIONS:
          --check                 Write nothing; show what differs, and exit 1 if anything does.
          --root <folder>         The package's folder (default: the current one).
          --symbol-graph <file>   RealtimeABI.symbols.json, if it is there already.
          --help                  Show this text.

        EXIT: 0 done or up to date; 1 something differs, or the interface was refused; 2 usage.
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
            // First those that the interface is built from.
            try finish(OptionFiles.files(under: options.root), options)
            try finish(Output.files(for: try interface(options)), options)
        } catch {
            say("\(error)")
            exit(1)
        }
    }

    /// Writes the files, or checks that the tree has them so.
    private static func finish(_ files: [Output.File], _ options: Options) throws {
        if options.check {
            guard try Output.areUpToDate(files, under: options.root) else { exit(1) }
        } else {
            try Output.write(files, under: options.root)
        }
    }

    private static func interface(_ options: Options) throws -> Interface {
        let file = try options.symbolGraph ?? Toolchain.symbolGraph(of: options.root)
        let sources = SourceFiles(root: options.root)
        return try InterfaceReader.read(
            SymbolGraph(contentsOf: file), sources: sources,
            structs: StructReader.read("Sources/CShims/include/rt_types.h", from: sources),
            library: "realtime", version: version(from: sources))
    }

    /// The version is said once, in the file VERSION.
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
