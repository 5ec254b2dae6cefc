import Realtime
import Synchronization

/// A request whose response goes to a sink. If the response to a GET breaks off, the request is
/// repeated, for the rest of the body if the server has a validator for it (RFC 9110, 13.1.5), or
/// for all of it if nobody has read the beginning.
struct Download {
    let rest: REST
    let request: REST.Request
    let sink: AnswerSink
    let console: Console
    let progress: Progress?
    /// How many attempts may be made, those of the client included.
    let attempts: Int
    /// The time limit of all of them.
    let limit: Duration?

    private static let firstDelay = Duration.milliseconds(500)

    /// What a sink has, so that a request can ask for the rest.
    private struct Part {
        /// The ETag or the date of the response; nil for a part of an earlier run.
        var validator: String?
        var count: Int

        var headers: [(name: String, value: String)] {
            // Offsets are of the body as it is without a coding.
            [("Range", "bytes=\(count)-"), ("Accept-Encoding", "identity")]
                + (validator.map { [("If-Range", $0)] } ?? [])
        }

        /// Whether a response is the rest.
        /// - Throws: if it is another part.
        func isContinued(by answer: REST.Response) throws -> Bool {
            guard answer.status == 206 else { return false }
            let range = answer.header("content-range") ?? ""
            guard range.hasPrefix("bytes \(count)-") else {
                throw RealtimeError(
                    .protocolViolation,
                    "\(answer.url.prefix { $0 != "?" }) sends \(range.oneLine) instead of what "
                        + "follows byte \(count)")
            }
            return true
        }

        /// Whether a response says that nothing follows.
        func isWhole(by answer: REST.Response) -> Bool {
            answer.status == 416 && answer.header("content-range") == "bytes */\(count)"
        }
    }

    /// - Returns: the response that began the body, and whether that is known to be whole although
    ///   the response's status is another one.
    func run() async throws -> (answer: REST.Response, isWhole: Bool) {
        let end = limit.map { ContinuousClock.now + $0 }
        var part = sink.count > 0 ? Part(count: sink.count) : nil
        let continuesEarlierRun = part != nil
        var first: REST.Response?
        // Where the body of the current response begins.
        let start = Counter()
        var made = 0
        var delay = Download.firstDelay
        while true {
            let stream = try await rest.stream(next(part, after: made, from: start, end))
            let answer = stream.response
            made += answer.attempts
            if let part, part.isWhole(by: answer) { return (answer, true) }
            let isRest = try part?.isContinued(by: answer) ?? false
            let isGood = (200...299).contains(answer.status)
            do {
                // Of what was written to a pipe already, only the rest can be used.
                if isGood, !isRest, !sink.canRestart { throw broken(answer) }
                try sink.begin(answer, continues: isRest)
                start.set(isRest ? sink.count : 0)
                for try await piece in stream { try sink.take(piece) }
                return (isRest ? first ?? answer : answer, false)
            } catch let failure as REST.Failure {
                let error = RealtimeError(failure.code, failure.message)
                if isGood, first == nil || !isRest { first = answer }
                part = first.flatMap {
                    missing(after: $0, needsValidator: !(isRest && continuesEarlierRun))
                }
                let isCut = failure.code == .connectionLost || failure.code == .timeout
                let isLate = end.map { ContinuousClock.now + delay >= $0 } ?? false
                guard isCut, isGood, request.method == "GET", made < attempts, !isLate,
                    part != nil || sink.canRestart
                else { throw failure }
                report(error, delay, made + 1)
                try await Task.sleep(for: delay)
                delay *= 2
            }
        }
    }

    /// The request for what is missing.
    private func next(
        _ part: Part?, after made: Int, from start: Counter, _ end: ContinuousClock.Instant?
    ) -> REST.Request {
        var request = request
        if let part { request.headers += part.headers }
        request.attempts = attempts - made
        request.deadline = end.map { max(.milliseconds(1), ContinuousClock.now.duration(to: $0)) }
        request.onRetry = { cause, delay, attempt in report(cause, delay, made + attempt) }
        if let progress {
            request.onProgress = { sent, toSend, received, toReceive in
                guard received > 0 else { return progress.report("sent", sent, of: toSend) }
                let before = UInt64(start.value)
                let whole = toReceive > 0 ? before + toReceive : 0
                progress.report("received", before + received, of: whole)
            }
        }
        return request
    }

    private func report(_ cause: RealtimeError, _ delay: Duration, _ attempt: Int) {
        // The remark takes the line of the progress, which follows on the next one.
        progress?.end()
        console.reportLoss(cause, delay, attempt)
    }

    /// What can be continued after a response broke off; nil if nothing can.
    /// - Parameter needsValidator: unless the user has said that it is the same body.
    private func missing(after answer: REST.Response, needsValidator: Bool) -> Part? {
        guard sink.count > 0, answer.header("content-encoding") == nil,
            answer.header("accept-ranges") != "none",
            !request.headers.contains(where: { $0.name.lowercased() == "range" })
        else { return nil }
        let tag = answer.header("etag").flatMap { $0.hasPrefix("W/") ? nil : $0 }
        let validator = tag ?? answer.header("last-modified")
        guard validator != nil || !needsValidator else { return nil }
        return Part(validator: validator, count: sink.count)
    }

    /// The error for a body that begins again after a part of it was written.
    private func broken(_ answer: REST.Response) -> RealtimeError {
        let place = answer.url.prefix { $0 != "?" }
        return RealtimeError(
            .connectionLost,
            "the response of \(place) broke off after \(sink.count) bytes, and its rest cannot be "
                + "had: the server sends it from the beginning")
    }
}

/// A number that the loop's thread reads.
private final class Counter: Sendable {
    private let number = Atomic<Int>(0)

    var value: Int { number.load(ordering: .relaxed) }
    func set(_ value: Int) { number.store(value, ordering: .relaxed) }
}
