import DDPReplayer
import Foundation
import Testing

/// The scenarios that were recorded with Meteor's own client. They lie next to the repository.
struct DDPConformanceTests {
    static let folder = URL(filePath: #filePath)
        .deletingLastPathComponent()
        .appending(path: "../../../../shared/conformance/ddp").standardized

    /// Where Meteor's own client takes a document of a session that has ended for the server's,
    /// because a stub writes it before the new session has sent everything (M13). Its
    /// field `d` stays, though the server does not have it any more.
    private static let ghosts = [
        "random-17.json: command 60 ", "random-17.json: command 61 ",
        "random-17.json: command 66 ",
    ]

    @Test(.enabled(if: FileManager.default.fileExists(atPath: folder.path), "no scenarios here"))
    func everyRecordedScenarioPasses() throws {
        var differences: [String] = []
        var count = 0
        for name in try FileManager.default.contentsOfDirectory(atPath: Self.folder.path).sorted()
        where name.hasSuffix(".json") {
            let text = try Data(contentsOf: Self.folder.appending(path: name))
            differences += try DDPReplay.differences(file: name, text: Array(text))
            count += 1
        }
        differences.removeAll { line in Self.ghosts.contains { line.hasPrefix($0) } }
        #expect(differences == [])
        #expect(count >= 130)
    }

    @Test func differencesAreFound() throws {
        let scenario = """
            {"commands": [
            {"do": "open", "expect": []},
            {"do": "recv", "msg": {"msg": "connected", "session": "s"}, "expect": []},
            {"do": "isReady", "tag": "x", "expect": [{"ev": "isReady", "tag": "x", "value": true}]}
            ], "seeds": ["unused"]}
            """
        let differences = try DDPReplay.differences(file: "f", text: Array(scenario.utf8))
        #expect(differences.count == 3)
        #expect(differences.first?.hasPrefix("f: command 0 (open): [] expected, [{") == true)
        #expect(differences.last == "f: not all ids and seeds were drawn")
    }
}
