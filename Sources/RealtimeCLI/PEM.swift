import Glibc
@_spi(CommandLine) import Realtime

/// PEM text (RFC 7468) that was given instead of the name of a file with it. It may be a private
/// key, so no message shows it.
enum PEM {
    /// - Throws: `RealtimeError` for PEM text.
    static func refuse(_ path: String, _ option: String? = nil) throws {
        guard Network.isPEM(path) else { return }
        throw RealtimeError(
            .invalidArgument, "\(option.map { "\($0): " } ?? "")PEM text is given; \(advice)")
    }

    /// Without what is in PEM text among the arguments.
    static func hidden(in message: String) -> String {
        secrets.reduce(message) { $0.replacing($1, with: "***") }
    }

    /// Ends the process with another message if the parser of arguments would show PEM text.
    static func exitIfShown(by message: String) {
        guard hidden(in: message) != message else { return }
        let usage = message.firstRange(of: "\nUsage: ").map { message[$0.lowerBound...] }
        let text = "Error: An argument is PEM text, which is not shown; \(advice).\(usage ?? "")\n"
        Console.write(Array(hidden(in: text).utf8), to: STDERR_FILENO)
        exit(ExitStatus.usage.rawValue)
    }

    private static let advice = "the name of a file with it is expected"

    /// The base64 of PEM text among the arguments: each line, and pieces of it, because a message
    /// may cut a line. A shell may have split the text into several arguments.
    private static let secrets: [String] = {
        var lines: [Substring.UTF8View] = []
        var isInside = false
        for argument in CommandLine.arguments {
            isInside = isInside || argument.contains("-----BEGIN")
            guard isInside || isKey(argument) else { continue }
            lines += argument[...].utf8.split { !isBase64($0) }
            isInside = isInside && !argument.contains("-----END")
        }
        lines.removeAll { $0.count < pieceBytes }
        let pieces: [Substring.UTF8View] = lines.flatMap { line in
            sequence(first: line) { $0.dropFirst(pieceBytes) }
                .prefix { $0.count >= pieceBytes }.map { $0.prefix(pieceBytes) }
        }
        // Whole lines first.
        return (lines + pieces).map { String(Substring($0)) }
    }()

    /// Shorter texts may be words of a message.
    private static let pieceBytes = 16

    private static func isBase64(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
            true
        default: false
        }
    }

    /// Whether an argument, or the value of an option in it, is a key without its first and last
    /// line.
    private static func isKey(_ argument: String) -> Bool {
        let value = argument.drop { $0 != "=" }.dropFirst()
        return Network.isPEM(argument) || Network.isPEM(String(value))
    }
}
