import DDPReplayer
import Foundation
import Wire

/// `ddp-replay FILE…` prints each difference, then `N passed, M failed`, counted in files. The exit
/// status is 1 on a difference, and 2 if a file cannot be used.
@main
enum DDPReplayCommand {
    static func main() {
        let files = CommandLine.arguments.dropFirst()
        guard !files.isEmpty else { fail("usage: ddp-replay FILE…") }
        var (passed, failed) = (0, 0)
        for file in files {
            guard let text = FileManager.default.contents(atPath: file) else {
                fail("\(file) cannot be read")
            }
            do {
                let differences = try DDPReplay.differences(file: file, text: Array(text))
                for difference in differences { print(difference) }
                if differences.isEmpty { passed += 1 } else { failed += 1 }
            } catch {
                fail("\(file): \(error.message)")
            }
        }
        print("\(passed) passed, \(failed) failed")
        exit(failed == 0 ? 0 : 1)
    }

    private static func fail(_ reason: String) -> Never {
        FileHandle.standardError.write(Data("\(reason)\n".utf8))
        exit(2)
    }
}
