import Glibc
import Realtime
import Synchronization
import Testing

private let server = StreamServer.shared

private func options(
    _ change: (inout EventSource.Options) -> Void = { _ in }
) -> EventSource.Options {
    var options = EventSource.Options()
    options.reconnectionTime = .milliseconds(10)
    options.minReconnectionTime = .milliseconds(10)
    change(&options)
    return options
}

@Suite(.timeLimit(.minutes(5))) struct EventSourceTests {
    @Test func eventsAreIteratedOverReconnections() async throws {
        let source = try EventSource(server.url("events/3"), options: options())
        var count = 0
        for try await event in source {
            count += 1
            #expect(event.id == String(count))
            #expect(event.event == (count.isMultiple(of: 2) ? "message" : "odd"))
            #expect(event.data == "number\n\(count)")
            #expect(event.hadID)
            if count == 7 { break }
        }
        #expect(source.origin == "http://127.0.0.1:\(server.port)")
        #expect(source.reconnectionTime == .milliseconds(10))
        source.close()
        #expect(source.readyState == .closed)
        for try await _ in source { Issue.record("an event after the end") }
    }

    @Test func handlersHaveIKEventSourcesNames() async throws {
        let source = try EventSource(server.url("events/4"), options: options(), start: false)
        let (calls, continuation) = AsyncStream.makeStream(of: String.self)
        source.onOpen { _ in continuation.yield("open") }
        source.onRetry { continuation.yield("retry \($0)") }
        source.onMessage { id, event, _ in continuation.yield("\(event) \(id)") }
        source.addEventListener("odd") { id, event, _ in continuation.yield("\(event) \(id)") }
        let second = source.addEventListener("odd") { id, _, _ in continuation.yield("again \(id)")
        }
        source.addEventListener("other") { _, _, _ in Issue.record("never sent") }
        #expect(source.events() == ["odd", "other"])
        source.removeEventListener("other")
        source.onError { error in
            #expect(!error.isFatal)
            // The stream before was stable, because it brought events.
            #expect(error.attempt == 1)
            continuation.yield("error \(error.error.code)")
        }
        try source.start()
        #expect(throws: RealtimeError.self) { try source.start() }
        var iterator = calls.makeAsyncIterator()
        for expected in [
            "open", "retry 0.01 seconds", "odd 1", "again 1", "message 2", "odd 3", "again 3",
            "message 4", "error closed", "open", "retry 0.01 seconds", "odd 5",
        ] {
            #expect(await iterator.next() == expected)
        }
        source.removeEventListener(second)
        source.close()
    }

    @Test func credentialsAreFetched() async throws {
        let asked = Atomic<Int>(0)
        let source = try EventSource(
            server.url("tokens"),
            options: options {
                $0.credentials = { response in
                    #expect(response.status == 401)
                    #expect(asked.add(1, ordering: .relaxed).newValue == 1)
                    await Task.yield()
                    return [("Authorization", "Bearer good")]
                }
                $0.headerProvider = { [("X-Attempt", String($0))] }
            })
        // Each event ends its stream, so later attempts send the credentials, too.
        var ids: [String] = []
        for try await event in source {
            ids.append(event.id)
            if ids.count == 3 { break }
        }
        #expect(ids == ["1", "2", "3"])
        #expect(asked.load(ordering: .relaxed) == 1)
        source.close()
    }

    @Test func withoutCredentialsItEnds() async throws {
        let source = try EventSource(
            server.url("tokens"), options: options { $0.credentials = { _ in nil } })
        let error = await #expect(throws: RealtimeError.self) {
            for try await _ in source { Issue.record("an event") }
        }
        #expect(error?.code == .httpStatus)
        #expect(error?.response?.status == 401)
        #expect(source.readyState == .closed)
    }

    @Test func anErrorOfTheCredentialsHandlerEndsIt() async throws {
        let cause = RealtimeError(.cancelled, "the user went away")
        let source = try EventSource(
            server.url("tokens"), options: options { $0.credentials = { _ in throw cause } })
        let error = await #expect(throws: RealtimeError.self) {
            for try await _ in source { Issue.record("an event") }
        }
        #expect(error?.code == .cancelled && error?.message == cause.message)
        struct Other: Error {}
        let poll = try LongPoll(
            server.url("poll/1"),
            options: {
                var options = LongPoll.Options()
                options.credentials = { _ in throw Other() }
                return options
            }())
        let second = await #expect(throws: RealtimeError.self) { for try await _ in poll {} }
        #expect(second?.code == .auth && second?.message.contains("Other") == true)
    }

    @Test func errorsAreKeptForTheirHandler() async throws {
        let source = try EventSource(server.url("tokens"), options: options())
        while source.readyState != .closed { await Task.yield() }
        let (errors, continuation) = AsyncStream.makeStream(of: EventSource.ErrorEvent.self)
        source.onError { continuation.yield($0) }
        for await error in errors {
            #expect(error.isFatal)
            #expect(error.httpStatus == 401)
            break
        }
    }

    @Test func idsOfProcessedEventsAreKept() async throws {
        let path = "/tmp/realtime_tests_ids.\(UInt64.random(in: 0...UInt64.max))"
        defer { for name in [path, path + ".lock"] { unlink(name) } }
        // The last event comes again, because no task asked for the next one.
        for expected in [["1", "2"], ["2"], ["2", "3"]] {
            let source = try EventSource(
                server.url("events/3"),
                options: options {
                    $0.idFile = path
                    $0.reconnect = false
                })
            var taken: [String] = []
            for try await event in source {
                taken.append(event.id)
                if taken.count == expected.count { break }
            }
            #expect(taken == expected)
            source.close()
        }
    }

    @Test func idsAreKeptUpToTheSlowestIterator() async throws {
        let path = "/tmp/realtime_tests_takers.\(UInt64.random(in: 0...UInt64.max))"
        defer { for name in [path, path + ".lock"] { unlink(name) } }
        func open() throws -> EventSource {
            try EventSource(server.url("events/9"), options: options { $0.idFile = path })
        }
        // The first task has not finished with its event, whatever the second one has.
        var source = try open()
        var slow = source.makeAsyncIterator()
        var quick = source.makeAsyncIterator()
        #expect(try await slow.next()?.id == "1")
        for id in 2...4 { #expect(try await quick.next()?.id == String(id)) }
        source.close()
        source = try open()
        slow = source.makeAsyncIterator()
        quick = source.makeAsyncIterator()
        #expect(try await slow.next()?.id == "1")
        for id in 2...4 { #expect(try await quick.next()?.id == String(id)) }
        #expect(try await slow.next()?.id == "5")
        // The event of an iterator that is gone has no owner.
        quick = source.makeAsyncIterator()
        #expect(try await quick.next()?.id == "6")
        source.close()
        for try await event in try open() {
            #expect(event.id == "5")
            break
        }
    }

    @Test func aResetIDIsNotKeptLater() async throws {
        let path = "/tmp/realtime_tests_reset.\(UInt64.random(in: 0...UInt64.max))"
        defer { for name in [path, path + ".lock"] { unlink(name) } }
        // An event counts as taken once the last is asked for; the second is reset.
        for (count, next) in [(2, "1"), (3, "1"), (4, "4")] {
            let source = try EventSource(
                server.url("events/9"), options: options { $0.idFile = path })
            var taken = source.makeAsyncIterator()
            for id in 1...count {
                #expect(try await taken.next()?.id == String(id))
                if id == 2 { try source.resetStoredID() }
            }
            source.close()
            let second = try EventSource(
                server.url("events/9"), options: options { $0.idFile = path })
            taken = second.makeAsyncIterator()
            #expect(try await taken.next()?.id == next)
            second.close()
            unlink(path)
        }
    }

    @Test func idsAreGivenToTheCaller() async throws {
        let (stored, continuation) = AsyncStream.makeStream(of: String.self)
        let source = try EventSource(
            server.url("refuse"),
            options: options {
                $0.onStore = { key, id in continuation.yield("\(key) \(id)") }
                $0.onRequest = { attempt, next in
                    #expect(attempt == 1)
                    next.url = server.url("tokens")
                    next.headers = [("Authorization", "Bearer good")]
                    return true
                }
            })
        var taken = source.makeAsyncIterator()
        for id in ["1", "2"] { #expect(try await taken.next()?.id == id) }
        for await text in stored {
            // Under the URL that it started with, which the next run uses, too.
            #expect(text == "\(server.url("refuse")) 1")
            break
        }
        source.close()
    }

    @Test func anAttemptCanBeDeclined() async throws {
        let source = try EventSource(
            server.url("events/1"), options: options { $0.onRequest = { _, _ in false } })
        for try await _ in source { Issue.record("an event") }
        #expect(source.readyState == .closed)
        let poll = try LongPoll(
            server.url("refuse"),
            options: {
                var options = LongPoll.Options()
                options.headerProvider = { _ in [("Authorization", "Bearer good")] }
                options.cursor = .headerID
                options.onRequest = { _, next in
                    next.url = server.url("poll/1")
                    return true
                }
                return options
            }())
        for try await message in poll {
            #expect(message.id == "1")
            break
        }
        poll.close()
    }

    @Test func cancellingClosesIt() async throws {
        let source = try EventSource(
            server.url("events/1"),
            options: options {
                $0.reconnectionTime = .seconds(1000)
            })
        let (seen, continuation) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            for try await _ in source { continuation.yield() }
        }
        for await _ in seen { break }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(source.readyState == .closed)
    }

    @Test func aFullMailboxStopsReceivingAndLosesNothing() async throws {
        let source = try EventSource(
            server.url("events/3000"), options: options { $0.maxBufferedEvents = 4 })
        var count = 0
        for try await event in source {
            count += 1
            #expect(event.id == String(count))
            if count == 3000 { break }
        }
        source.close()
    }

    @Test func releasingTheLastReferenceEndsIt() async throws {
        weak var weakly: EventSource?
        do {
            let source = try EventSource(server.url("events/2"), options: options())
            weakly = source
            for try await _ in source { break }
        }
        #expect(weakly == nil)
    }

    @Test(arguments: [
        ("ws://a.test", RealtimeError.Code.unsupportedScheme), ("http://", .invalidURL),
    ])
    func badURLsAreRefused(_ url: String, _ code: RealtimeError.Code) {
        let error = #expect(throws: RealtimeError.self) { try EventSource(url) }
        #expect(error?.code == code)
    }

    @Test func badOptionsAreRefused() {
        for change: @Sendable (inout EventSource.Options) -> Void in [
            { $0.safeHeaders = ["a b"] }, { $0.safeHeaders = [""] }, { $0.storeKey = "k" },
            { $0.headers = [("Expect", "100-continue")] }, { $0.maxNameBytes = -1 },
            { $0.reconnectionTime = .seconds(-1) }, { $0.lastEventID = "\n" },
            {
                $0.storeKey = ""
                $0.onStore = { _, _ in }
            },
        ] {
            #expect(throws: RealtimeError.self) {
                try EventSource(server.url("events/1"), options: options(change))
            }
        }
    }

    @Test func idsAreKeptByTheCallerUnderTheirKey() async throws {
        let (kept, continuation) = AsyncStream.makeStream(of: String.self)
        let source = try EventSource(
            server.url("events/1"),
            options: options {
                $0.storeKey = "mine"
                $0.onStore = { key, id in continuation.yield("\(key) \(id)") }
            })
        source.onMessage { _, _, _ in }
        for await text in kept {
            #expect(text == "mine 1")
            break
        }
        source.close()
    }

    @Test func basicCredentialsAreEncoded() throws {
        #expect(
            try EventSource.basicAuth("Aladdin", password: "open sesame")
                == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        #expect(throws: RealtimeError.self) { try EventSource.basicAuth("a:b", password: "c") }
    }
}
