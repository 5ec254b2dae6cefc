import Foundation

/// The part of the compiler's symbol graph that the reader needs. The format is swift-docc's
/// SymbolKit schema: https://github.com/swiftlang/swift-docc-symbolkit.
struct SymbolGraph: Decodable {
    var symbols: [Symbol]

    struct Symbol: Decodable {
        var kind: Kind
        var pathComponents: [String]
        var docComment: DocComment?
        var declarationFragments: [Fragment]?
        var accessLevel: String
        var location: Location?

        /// The declaration as the compiler prints it, with attributes, without defaults.
        var declaration: String { (declarationFragments ?? []).map(\.spelling).joined() }
        var name: String { pathComponents.last ?? "" }
    }

    struct Kind: Decodable {
        var identifier: String
    }

    struct DocComment: Decodable {
        var lines: [Line]

        struct Line: Decodable {
            var text: String
            var range: Range?
        }

        struct Range: Decodable {
            var start: Position
        }
    }

    struct Fragment: Decodable {
        var spelling: String
    }

    struct Location: Decodable {
        var uri: String
        var position: Position
    }

    /// A position, counted from 0.
    struct Position: Decodable {
        var line: Int
        var character: Int
    }

    init(contentsOf file: URL) throws {
        do {
            self = try JSONDecoder().decode(SymbolGraph.self, from: Data(contentsOf: file))
        } catch {
            throw Failure.message("cannot read the symbol graph \(file.path): \(error)")
        }
    }
}
