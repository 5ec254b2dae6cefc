import Foundation
import Realtime
import Synchronization
import Testing

/// Documents that are kept between runs.
@Suite struct DDPDocumentFileTests {
    private let folder: URL
    private var path: String { folder.appending(path: "documents").path() }

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private func options() -> DDPClient.Options {
        var options = DDPClient.Options()
        options.documentFile = path
        // So that handlers have run when a subscription is ready.
        options.executor = .loop
        return options
    }

    /// A run that has the documents of the app, and waits until they are on the disk.
    private func keep(_ app: MeteorApp) async throws {
        let client = try app.client(options())
        try await client.subscribe("all").ready()
        client.close()
        while !FileManager.default.fileExists(atPath: path) { await Task.yield() }
    }

    private func end() { try? FileManager.default.removeItem(at: folder) }

    @Test(.timeLimit(.minutes(5))) func documentsAreThereAtOnceAndThenReplaced() async throws {
        defer { end() }
        let app = try await MeteorApp()
        try await keep(app)
        #expect(
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
                == 0o600)
        try await app.control("remove", ["collection": "players", "id": "b"])
        try await app.rename("a", to: "Abe")
        let client = try DDPClient(app.url, options: options())
        let players = try client.collection("players")
        #expect(players["a"]?["name"] == "Ada" && players.count == 2 && client.hasStaleDocuments)
        let isCurrent = Mutex(false)
        client.onCurrent { isCurrent.withLock { $0 = true } }
        try client.connect()
        try await client.subscribe("all").ready()
        #expect(players["a"]?["name"] == "Abe" && players.count == 1)
        #expect(!client.hasStaleDocuments && isCurrent.withLock { $0 })
        client.close()
    }

    @Test(.timeLimit(.minutes(5)), arguments: [0, 22, 30, 100])
    func aDamagedFileMeansAFreshStart(_ place: Int) async throws {
        defer { end() }
        let app = try await MeteorApp()
        try await keep(app)
        var bytes = try Data(contentsOf: URL(filePath: path))
        bytes[place] ^= 1
        try bytes.write(to: URL(filePath: path))
        let client = try DDPClient(app.url, options: options())
        #expect(try client.collection("players").count == 0 && !client.hasStaleDocuments)
        // It is replaced.
        try client.connect()
        try await client.subscribe("all").ready()
        client.close()
        while try Data(contentsOf: URL(filePath: path)) == bytes { await Task.yield() }
    }

    @Test func filesOfOthersAreRefused() async throws {
        defer { end() }
        let file = URL(filePath: path)
        try Data("my diary\n".utf8).write(to: file)
        let client = try DDPClient("ws://127.0.0.1:1", options: options())
        let error = #expect(throws: RealtimeError.self) { try client.connect() }
        #expect(error?.code == .store && error?.message.contains(path) == true)
        client.close()
        #expect(try Data(contentsOf: file) == Data("my diary\n".utf8))
    }
}
