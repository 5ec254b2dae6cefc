import Foundation
import RealtimeFoundation
import Testing

/// Programs in the style of IKEventSource.
@Suite(.timeLimit(.minutes(5))) struct IKEventSourceTests {
    private let server = StreamServer.shared

    @Test func eachNameIsThere() async throws {
        let basicAuth = try EventSource.basicAuth("user", password: "password")
        let source = EventSource(
            url: server.url("events/4"), headers: ["Authorization": basicAuth], idFile: .none)
        let (calls, continuation) = AsyncStream.makeStream(of: String.self)
        source.onOpen { continuation.yield("open") }
        source.onError { error in continuation.yield("error \(error.isFatal)") }
        source.onMessage { id, event, data in continuation.yield("\(id) \(event) \(data.count)") }
        source.addEventListener("odd") { id, event, data in
            continuation.yield("\(id) \(event) \(data.count)")
        }
        source.addEventListener("other") { _, _, _ in }
        #expect(source.events() == ["odd", "other"])
        source.removeEventListener("other")
        #expect(source.events() == ["odd"])
        var told: [String] = []
        for await call in calls {
            told.append(call)
            if call == "4 message 8" { break }
        }
        // The stream may open before there is a handler for it.
        #expect(told.suffix(4) == ["1 odd 8", "2 message 8", "3 odd 8", "4 message 8"])
        #expect(told.count == 4 || told.first == "open")
        #expect(source.readyState != .closed)
        source.close()
        #expect(source.readyState == .closed)
    }

    @Test func theNextRunContinues() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path()
        defer {
            for name in [path, path + ".lock"] { try? FileManager.default.removeItem(atPath: name) }
        }
        for expected in [["1", "2", "3"], ["4", "5"]] {
            let source = EventSource(url: server.url("events/9"), idFile: .path(path))
            let (ids, continuation) = AsyncStream.makeStream(of: String.self)
            source.onAny { [weak source] event in
                // First, so that no further event is handled.
                if event.id == expected.last { source?.close() }
                continuation.yield(event.id)
            }
            var seen: [String] = []
            for await id in ids {
                seen.append(id)
                if id == expected.last { break }
            }
            #expect(seen == expected)
        }
    }

    /// The initializer does not throw: what cannot be used is a fatal error.
    @Test(arguments: [("", "no token", "invalidHeader"), ("ws", "X-Token", "unsupportedScheme")])
    func whatCannotBeUsedIsReported(scheme: String, header: String, code: String) async throws {
        let url = scheme + server.url("events/1").dropFirst(scheme.isEmpty ? 0 : 4)
        let source = EventSource(url: url, headers: [header: "x"], idFile: .none)
        let (errors, continuation) = AsyncStream.makeStream(of: String.self)
        source.onOpen { continuation.yield("open") }
        source.onError { error in
            MainActor.assertIsolated()
            continuation.yield("\(error.isFatal) \(error.error.code)")
        }
        var iterator = errors.makeAsyncIterator()
        #expect(await iterator.next() == "true \(code)")
        #expect(source.readyState == EventSourceState.closed)
        let error = await #expect(throws: RealtimeError.self) {
            for try await _ in source {}
        }
        #expect(error.map { "\($0.code)" } == code)
        source.close()
    }

    @Test func urlsAreThoseOfFoundation() async throws {
        let url = try #require(URL(string: server.url("events/2")))
        let source = EventSource(url: url, headers: [:], idFile: .none)
        let (ids, continuation) = AsyncStream.makeStream(of: String.self)
        source.onMessage { (id: String?, event: String?, data: String?) in
            continuation.yield(id ?? "")
        }
        var iterator = ids.makeAsyncIterator()
        #expect(await iterator.next() == "2")
        #expect(source.readyState != .closed)
        #expect(source.URL == url)
        source.close()
    }
}
