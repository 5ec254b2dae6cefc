import Foundation
import Testing
import Wire

@testable import Engine

@Suite struct StandardIDFileTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        .path()

    private func withFolder(_ test: () throws -> Void) throws {
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try test()
    }

    private func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    @Test func eachProgramHasAFile() throws {
        try withFolder {
            let state = folder + "/a/state"
            let path = try StandardIDFile.path(
                for: "/usr/bin/program", state: state, home: "/nowhere")
            #expect(path == state + "/librealtime/event-ids/program")
            #expect(try mode(state + "/librealtime/event-ids") == 0o700)
            for (program, name) in [("other", "other"), ("", "program"), ("a/b/", "b")] {
                let path = try StandardIDFile.path(for: program, state: state, home: nil)
                #expect(path == state + "/librealtime/event-ids/" + name)
            }
        }
    }

    @Test func withoutAStateFolderItIsInTheHome() throws {
        try withFolder {
            for state in [nil, "relative"] {
                let path = try StandardIDFile.path(for: "program", state: state, home: folder)
                #expect(path == folder + "/.local/state/librealtime/event-ids/program")
            }
        }
    }

    /// Root may write everywhere, so the folder that cannot be used is a file.
    @Test func placesThatCannotBeUsedAreErrors() throws {
        func message(_ state: String?) -> String {
            let error = #expect(throws: RealtimeError.self) {
                try StandardIDFile.path(for: "p", state: state, home: nil)
            }
            #expect(error?.code == .store)
            return error?.message ?? ""
        }
        try withFolder {
            try Data().write(to: URL(filePath: folder + "/file"))
            #expect(message(folder + "/file").hasSuffix("cannot be created: Not a directory"))
            #expect(message(nil).hasPrefix("neither XDG_STATE_HOME nor HOME"))
            let path = folder + "/librealtime/event-ids"
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true)
            try Data("not ours".utf8).write(to: URL(filePath: path + "/p"))
            #expect(message(folder).contains("was not written by librealtime"))
        }
    }
}
