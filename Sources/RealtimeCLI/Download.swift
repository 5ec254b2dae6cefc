import Realtime
import Synchronization

/// A request whose response goes to a sink. If the response to a GET breaks off, the request is
/// repeated, for the rest of the body if the server has a validator for it (RFC 9110, 13.1.5), or
/// for all of it if nobody has read the beginning.
/// Another method is not repeated: the server has answered it, and may answer otherwise the second
/// time, such as with 404 to a DELETE.
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

    /// Where a download is.
    private struct State {
        /// What the next request continues; nil if it asks for all.
        var part: BodyPart?
        /// Of which version the bytes of the sink are; nil if that is unknown.
        var version: BodyVersion?
        /// The user says that the part of an earlier run is of the same version.
        var isTrusted: Bool
        /// The response that began the body.
        var first: REST.Response?
        /// How many attempts were made, without those that brought what they could.
        var made = 0

        init(count: Int) {
            part = count > 0 ? BodyPart(version: nil, count: count) : nil
            isTrusted = count > 0
        }

        /// Asks for all of the body, because a response did not have the rest.
        mutating func restart() {
            (part, version, first, isTrusted) = (nil, nil, nil, false)
            made -= 1
        }
    }

    /// - Returns: the response that began the body, and whether that is known to be whole although
    ///   the response's status is another one.
    func run() async throws -> (answer: REST.Response, isWhole: Bool) {
        let end = limit.map { ContinuousClock.now + $0 }
        var state = State(count: sink.count)
        // Where the body of the current response begins.
        let start = Counter()
        var delay = Download.firstDelay
        while true {
            let stream = try await rest.stream(next(state, from: start, end))
            state.made += stream.response.attempts
            do {
                if let result = try await take(stream, start, &state) { return result }
            } catch let failure as REST.Failure {
                state.part = missing(state)
                let isGood = stream.response.isGood
                let isCut = failure.code == .connectionLost || failure.code == .timeout
                let isLate = end.map { ContinuousClock.now + delay >= $0 } ?? false
                guard isCut, isGood else { throw failure }
                if let reason = finality(state, stream.response) {
                    throw CutResponse(failure: failure, reason: reason)
                }
                guard state.made < attempts, !isLate else { throw failure }
                report(RealtimeError(failure.code, failure.message), delay, state.made + 1)
                try await Task.sleep(for: delay)
                delay *= 2
            }
        }
    }

    /// Takes what a response has.
    /// - Returns: what `run` returns; nil if there is more to ask for.
    private func take(
        _ stream: REST.Stream, _ start: Counter, _ state: inout State
    ) async throws -> (answer: REST.Response, isWhole: Bool)? {
        let answer = stream.response
        switch try state.part?.meaning(of: answer) ?? .unrelated {
        case .whole: return (state.first ?? answer, true)
        case .anotherVersion:
            let error = lost(answer, "the server has another version of it")
            guard sink.canRestart else { throw error }
            report(error, .zero, state.made + 1)
            state.restart()
            return nil
        case .unrelated:
            if answer.isGood {
                try check(answer)
                (state.first, state.version) = (answer, BodyVersion(answer))
                state.isTrusted = false
            }
            try sink.begin(answer, continues: false)
            start.set(0)
            for try await piece in stream { try sink.take(piece) }
            return (answer, false)
        case .rest(let range):
            let first = state.first ?? answer
            state.first = first
            state.version = state.version?.completed(by: range) ?? BodyVersion(answer)
            try sink.begin(answer, continues: true)
            start.set(sink.count)
            for try await piece in stream {
                guard piece.count <= range.end - sink.count else { throw excess(answer) }
                try sink.take(piece)
            }
            if sink.count == state.version?.total { return (first, false) }
            // A server may send less than it was asked for (RFC 9110, 15.3.7).
            guard sink.count > range.start else {
                throw lost(answer, "the server sends nothing more of it")
            }
            state.made -= 1
            state.part = BodyPart(version: state.version, count: sink.count)
            return nil
        }
    }

    /// Checks a response that should have all of the body.
    private func check(_ answer: REST.Response) throws {
        // Of what was written to a pipe already, only the rest can be used.
        guard sink.canRestart else {
            throw lost(answer, "the server sends it from the beginning")
        }
        guard answer.status != 206 || request.method != "GET" || hasOwnRange else {
            throw RealtimeError(
                .protocolViolation,
                "\(answer.place) sends a part (206), although all of the body was asked for")
        }
    }

    /// The request for what is missing.
    private func next(
        _ state: State, from start: Counter, _ end: ContinuousClock.Instant?
    ) -> REST.Request {
        var request = request
        if let part = state.part { request.headers += part.headers }
        request.attempts = attempts - state.made
        request.deadline = end.map { max(.milliseconds(1), ContinuousClock.now.duration(to: $0)) }
        request.onRetry = { [made = state.made] cause, delay, attempt in
            report(cause, delay, made + attempt)
        }
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

    private func report(_ cause: RealtimeError, _ delay: Duration?, _ attempt: Int) {
        // The remark takes the line of the progress, which follows on the next one.
        progress?.end()
        console.reportLoss(cause, delay, attempt)
    }

    /// What can be continued after a response broke off; nil if nothing can.
    private func missing(_ state: State) -> BodyPart? {
        guard let first = state.first, sink.count > 0, obstacle(state, first) == nil else {
            return nil
        }
        return BodyPart(version: state.version, count: sink.count)
    }

    /// Why the rest of a body cannot be asked for.
    private func obstacle(_ state: State, _ first: REST.Response) -> String? {
        if hasOwnRange { return "-H Range asked for a part" }
        if first.header("content-encoding") != nil { return "the body is compressed" }
        if first.header("accept-ranges") == "none" { return "the server sends no parts of it" }
        if state.version?.validator == nil, !state.isTrusted {
            return "the server names no version of it (ETag)"
        }
        return nil
    }

    /// Why a request is not repeated, whether or not attempts are left: what it did, or what was
    /// written of its response, could happen twice.
    private func finality(_ state: State, _ answer: REST.Response) -> String? {
        guard request.method == "GET" else {
            return "\(request.method) is not repeated: the server has answered it with"
                + " \(answer.status)."
        }
        guard state.part == nil, !sink.canRestart, let first = state.first,
            let obstacle = obstacle(state, first)
        else { return nil }
        return "It is not repeated: \(sink.count) bytes are written already, and the rest cannot be"
            + " asked for, because \(obstacle). A file of --output can begin again."
    }

    /// Whether the user asks for a part.
    private var hasOwnRange: Bool {
        request.headers.contains { $0.name.lowercased() == "range" }
    }

    /// The error for the rest of a body of which a part is there.
    private func lost(_ answer: REST.Response, _ cause: String) -> RealtimeError {
        RealtimeError(
            .connectionLost,
            "the response of \(answer.place) broke off after \(sink.count) bytes, and its rest "
                + "cannot be had: \(cause)")
    }

    private func excess(_ answer: REST.Response) -> RealtimeError {
        let range = (answer.header("content-range") ?? "").oneLine
        return RealtimeError(
            .protocolViolation, "\(answer.place) sends more than \(range), which it announced")
    }
}

/// A response broke off, and its request is not repeated.
struct CutResponse: Error {
    let failure: REST.Failure
    /// Why not, as a sentence.
    let reason: String
}

/// A number that the loop's thread reads.
private final class Counter: Sendable {
    private let number = Atomic<Int>(0)

    var value: Int { number.load(ordering: .relaxed) }
    func set(_ value: Int) { number.store(value, ordering: .relaxed) }
}
