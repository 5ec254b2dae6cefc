import DocumentsReplayer
import Foundation
import Testing

/// The cases that were recorded from Meteor's own code. They lie next to the repository.
struct ConformanceTests {
    static let folder = URL(filePath: #filePath)
        .deletingLastPathComponent().appending(path: "../../../shared/conformance").standardized

    @Test(
        .enabled(if: FileManager.default.fileExists(atPath: folder.path), "no recorded cases here"),
        arguments: Replay.Kind.allCases)
    func everyRecordedCasePasses(kind: Replay.Kind) throws {
        let file = Self.folder.appending(path: "\(kind.rawValue)/cases.json")
        var replay = Replay()
        try replay.run(kind, file: file.lastPathComponent, text: Array(Data(contentsOf: file)))
        #expect(replay.differences == [])
        #expect(replay.passed > 100)
    }

    @Test func differencesAreFound() throws {
        let cases = """
            {"now":5,"fixtures":{"f":[{"_id":"a","v":1}]},
            "queries":[{"n":1,"docs":"f","selector":{"v":1},"ids":[]},
            {"n":2,"docs":"f","selector":{"v":1},"error":true}],
            "modifiers":[{"n":3,"doc":{"_id":"a"},"modifier":{"$set":{"v":1}},"error":true}],
            "diffs":[{"n":4,"old":[],"new":[{"_id":"a"}],"expect":[]}]}
            """
        var replay = Replay()
        try replay.run(.minimongo, file: "f", text: Array(cases.utf8))
        #expect(replay.passed == 0)
        #expect(replay.differences.count == 4)
        #expect(replay.differences.first == #"f: queries 1: [] expected, ["a"] came"#)
    }
}
