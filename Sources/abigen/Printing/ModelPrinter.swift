import Foundation

/// Prints the interface as JSON, a declaration to a line, so that a change of one shows as one.
enum ModelPrinter {
    static func print(_ interface: Interface) throws -> String {
        let members = [
            try member("library", interface.library), try member("version", interface.version),
            try list("chapters", interface.chapters), try list("handles", interface.handles),
            try list("aliases", interface.aliases), try list("enums", interface.enums),
            try list("structs", interface.structs), try list("callbacks", interface.callbacks),
            try list("functions", interface.functions),
        ]
        return "{\n\(members.joined(separator: ",\n"))\n}\n"
    }

    private static func member(_ name: String, _ value: some Encodable) throws -> String {
        "\"\(name)\": \(try line(value))"
    }

    private static func list(_ name: String, _ values: [some Encodable]) throws -> String {
        "\"\(name)\": [\n\(try values.map { try line($0) }.joined(separator: ",\n"))\n]"
    }

    private static func line(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }
}
