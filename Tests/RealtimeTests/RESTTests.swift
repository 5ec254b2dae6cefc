import Dispatch
import Foundation
import RealtimeFoundation
import Synchronization
import Testing

/// Requests from Swift, against `Tests/Support/rest_server.py`.
struct RESTTests {
    /// Paths use names of their own, because all tests share the server.
    private let name = UUID().uuidString

    private func rest(_ change: (inout REST.Options) -> Void = { _ in }) throws -> REST {
        var options = REST.Options.patient
        options.backoff.initialDelay = .milliseconds(2)
        options.backoff.maxDelay = .milliseconds(10)
        change(&options)
        return try REST(RESTServer.shared.url, options: options)
    }

    @Test func methodsAndBodies() async throws {
        let rest = try rest { $0.headers = [("X-Kept", "1")] }
        let got = try await rest.get("echo", query: [("a b", "é&")])
        #expect(got.status == 200 && got.reason == "Said" && got.httpVersion == 11)
        #expect(got.header("content-type") == "application/json")
        #expect(got.text.contains("/echo?a%20b=%C3%A9%26") && got.text.contains("X-Kept"))
        #expect(got.url == RESTServer.shared.url + "/echo?a%20b=%C3%A9%26")
        let posted = try await rest.post(
            "echo", body: .json("{}"), headers: [("x-kept", "2")])
        #expect(posted.text.contains("application/json") && !posted.text.contains("X-Kept"))
        #expect(try await rest.put("echo", body: .text("some")).text.contains("\"some\""))
        #expect(
            try await rest.patch("echo", body: .bytes([65], type: "a/b")).text.contains("\"A\""))
        #expect(try await rest.delete("echo").text.contains("DELETE"))
        #expect(try await rest.head("echo").body.isEmpty)
    }

    @Test(arguments: [0, 100, Int.max]) func bodiesHaveTheirLimit(limit: Int) async throws {
        var request = REST.Request("GET", "bytes/1000")
        request.maxBodyBytes = limit
        let rest = try rest()
        guard limit == 100 else {
            #expect(try await rest.send(request).body.count == 1000)
            return
        }
        let failure = await #expect(throws: REST.Failure.self) {
            try await rest.send(request)
        }
        #expect(failure?.code == .tooLarge && failure?.message.contains("maxBodyBytes") == true)
    }

    @Test func retriesAreReported() async throws {
        let retries = Mutex<[String]>([])
        var request = REST.Request("GET", "flaky/\(name)/2")
        request.onRetry = { cause, delay, attempt in
            let isSoon = delay.map { $0 >= .zero && $0 <= .milliseconds(10) } ?? false
            #expect(cause.response?.status == 503)
            retries.withLock { $0.append("\(cause.code) \(attempt) \(isSoon): \(cause.message)") }
        }
        // So that the handler has run when the request ends.
        let rest = try rest { $0.executor = .loop }
        #expect(try await rest.send(request).attempts == 3)
        let told = retries.withLock { $0 }
        #expect(told.count == 2 && told[0].hasPrefix("httpStatus 2 true: GET "), "\(told)")
        #expect(told.last?.hasPrefix("httpStatus 3 true: ") == true)
        #expect(told.allSatisfy { $0.contains(" was answered with 50") })
    }

    /// A handler that blocks delays neither its request nor others, and gets the newest progress.
    @Test(.timeLimit(.minutes(5))) func handlersOfARequestRunOnTheExecutor() async throws {
        let rest = try rest { $0.executor = .queue(DispatchQueue(label: "handlers")) }
        let (calls, continuation) = AsyncStream.makeStream(of: Int.self)
        let block = DispatchSemaphore(value: 0)
        var request = REST.Request("GET", "flaky/\(name)/1")
        request.onRetry = { _, _, attempt in
            continuation.yield(-attempt)
            block.wait()
        }
        request.onProgress = { _, _, received, _ in continuation.yield(Int(received)) }
        #expect(try await rest.send(request).attempts == 2)
        request = REST.Request("GET", "bytes/3000000")
        request.onProgress = { _, _, received, _ in continuation.yield(Int(received)) }
        #expect(try await rest.send(request).body.count == 3_000_000)
        block.signal()
        var (hasRetried, count) = (false, 0)
        for await call in calls {
            count += 1
            if call == -2 { hasRetried = true }
            // The first response is short.
            if hasRetried, call > 100_000 { break }
        }
        // Those that waited are one call.
        #expect(hasRetried && count < 10, "\(count) calls")
    }

    @Test(.timeLimit(.minutes(5))) func handlersOfARequestRunOnTheMainActor() async throws {
        let (calls, continuation) = AsyncStream.makeStream(of: Void.self)
        var request = REST.Request("GET", "flaky/\(name)/1")
        request.onRetry = { _, _, _ in
            MainActor.assertIsolated()
            continuation.yield()
        }
        _ = try await rest().send(request)
        for await _ in calls { break }
    }

    @Test func allButSuccessThrows() async throws {
        let rest = try rest()
        #expect(try await rest.get("flaky/\(name)/2").attempts == 3)
        let refused = await #expect(throws: REST.Failure.self) {
            _ = try await rest.get("status/404")
        }
        #expect(refused?.code == .httpStatus && refused?.response?.text == "status 404\n")
        let away = await #expect(throws: REST.Failure.self) {
            _ = try await rest.get("http://127.0.0.1:1/")
        }
        #expect(away?.code == .connect && away?.attempts == 3 && away?.response == nil)
        let asked = await #expect(throws: REST.Failure.self) {
            _ = try await rest.get("status/503", query: [("retry_after", "100")])
        }
        #expect(asked?.response?.retryAfter == .seconds(100))
        await #expect(throws: RealtimeError.self) { _ = try await rest.get("ftp://host/") }
        #expect(throws: RealtimeError.self) { try self.rest { $0.attempts = 0 } }
    }

    @Test func cancellingTheTaskCancelsTheRequest() async throws {
        let rest = try rest { $0.attemptTimeout = nil }
        let task = Task { try await rest.get("silent/\(name)/9") }
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        // The request is running: its body is being sent.
        let (asked, continuation) = AsyncStream.makeStream(of: Void.self)
        let body = REST.Request.Body.source(length: 3) {
            { _ in
                continuation.yield()
                return Array("abc".utf8)
            }
        }
        var request = REST.Request("PUT", "silent/\(name)/9")
        request.body = body
        let later = Task { [request] in try await rest.stream(request) }
        for await _ in asked { break }
        later.cancel()
        await #expect(throws: CancellationError.self) { _ = try await later.value }
        #expect(try await rest.get("echo").status == 200)
    }

    @Test func callbacksRunOnceAndLater() async throws {
        let rest = try rest { $0.attemptTimeout = nil }
        let calls = Mutex(0)
        let code = await withCheckedContinuation { continuation in
            do {
                let id = try rest.send(REST.Request("GET", "silent/\(name)/9")) { result in
                    calls.withLock { $0 += 1 }
                    guard case .failure(let failure) = result else {
                        return continuation.resume(returning: RealtimeError.Code?.none)
                    }
                    continuation.resume(returning: failure.code)
                }
                try rest.cancel(id)
                try rest.cancel(id)
            } catch {
                continuation.resume(returning: nil)
            }
        }
        #expect(code == .cancelled)
        _ = try await rest.get("echo")
        #expect(calls.withLock { $0 } == 1)
    }

    @Test func closeEndsAll() async throws {
        let rest = try rest()
        let code = await withCheckedContinuation { continuation in
            do {
                try rest.send(REST.Request("GET", "silent/\(name)/9")) { result in
                    guard case .failure(let failure) = result else {
                        return continuation.resume(returning: RealtimeError.Code?.none)
                    }
                    continuation.resume(returning: failure.code)
                }
                rest.close()
            } catch {
                continuation.resume(returning: nil)
            }
        }
        #expect(code == .closed)
        await #expect(throws: RealtimeError.self) { _ = try await rest.get("echo") }
    }

    @Test func streamedAnswers() async throws {
        let rest = try rest()
        let stream = try await rest.stream(REST.Request("GET", "bytes/3000000"))
        #expect(stream.response.status == 200 && stream.response.body.isEmpty)
        var count = 0
        for try await piece in stream {
            #expect(piece.first == UInt8(count % 251))
            count += piece.count
        }
        #expect(count == 3_000_000)
        let broken = try await rest.stream(REST.Request("GET", "short/\(name)/1"))
        await #expect(throws: REST.Failure.self) { for try await _ in broken {} }
        await #expect(throws: REST.Failure.self) {
            _ = try await rest.stream(REST.Request("GET", "http://127.0.0.1:1/"))
        }
    }

    @Test func aBodyFromASourceStartsOver() async throws {
        let rest = try rest()
        let made = Mutex(0)
        let body = REST.Request.Body.source(length: 6) {
            made.withLock { $0 += 1 }
            let left = Mutex(["abc", "def"])
            return { _ in
                left.withLock { left in left.isEmpty ? [] : Array(left.removeFirst().utf8) }
            }
        }
        let response = try await rest.put("flaky/\(name)/1", body: body)
        #expect(response.attempts == 2 && response.text.contains("\"abcdef\""))
        #expect(made.withLock { $0 } == 2)
    }

    @Test func aFreshTokenIsRequestedOnce() async throws {
        let asked = Mutex(0)
        let rest = try rest {
            $0.bearerToken = "old"
            $0.freshToken = {
                asked.withLock { $0 += 1 }
                return "good"
            }
        }
        async let one = rest.get("token")
        async let two = rest.get("token")
        let statuses = try await [one.status, two.status]
        #expect(statuses == [200, 200])
        #expect(asked.withLock { $0 } == 1)
    }

    @Test func waitsForANetworkAreReported() async throws {
        let reachability = try Reachability(.manual)
        try reachability.setOnline(false)
        var options = REST.Options()
        options.reachability = reachability
        let rest = try REST("http://127.0.0.1:1/", options: options)
        let (waits, continuation) = AsyncStream.makeStream(of: String.self)
        var request = REST.Request("GET", "a")
        request.onRetry = { cause, delay, attempt in
            continuation.yield("\(cause.code) \(delay == nil) \(attempt): \(cause.message)")
        }
        let number = try rest.send(request) { _ in continuation.finish() }
        var told = waits.makeAsyncIterator()
        let first = await told.next()
        #expect(
            first == "connect true 1: GET http://127.0.0.1:1/a: no network reaches it")
        try rest.cancel(number)
        let end = await told.next()
        #expect(end == nil)
    }

    @Test func requestsWaitForTheNetwork() async throws {
        let reachability = try Reachability(.manual)
        try reachability.setOnline(false)
        let rest = try REST(
            "http://192.0.2.1/",
            options: {
                var options = REST.Options()
                options.reachability = reachability
                options.queueCapacity = 1
                return options
            }())
        let (ends, continuation) = AsyncStream.makeStream(of: RealtimeError.Code?.self)
        let first = try rest.send(REST.Request("POST", "a")) { result in
            if case .failure(let failure) = result { continuation.yield(failure.code) }
        }
        let full = await #expect(throws: REST.Failure.self) { _ = try await rest.post("b") }
        #expect(full?.code == .queueFull)
        try rest.cancel(first)
        for await code in ends {
            #expect(code == .cancelled)
            break
        }
    }
}
