import DocumentsReplayer
import Foundation
import Wire

/// `documents-replay KIND FILE…` prints each difference, then `N passed, M failed`. The exit status
/// is 1 on a difference, and 2 if a file cannot be used.
@main
enum DocumentsReplay {
    static func main() {
        let arguments = CommandLine.arguments.dropFirst()
        guard let kind = arguments.first.flatMap(Replay.Kind.init), arguments.count > 1 else {
            let kinds = Replay.Kind.allCases.map { $0.rawValue }.joined(separator: "|")
            fail("usage: documents-replay \(kinds) FILE…")
        }
        var replay = Replay()
        for file in arguments.dropFirst() {
            guard let text = FileManager.default.contents(atPath: file) else {
                fail("\(file) cannot be read")
            }
            do {
                try replay.run(kind, file: file, text: Array(text))
            } catch {
                fail("\(file): \(error.message)")
            }
        }
        for difference in replay.differences { print(difference) }
        print("\(replay.passed) passed, \(replay.differences.count) failed")
        exit(replay.differences.isEmpty ? 0 : 1)
    }

    private static func fail(_ reason: String) -> Never {
        FileHandle.standardError.write(Data("\(reason)\n".utf8))
        exit(2)
    }
}
