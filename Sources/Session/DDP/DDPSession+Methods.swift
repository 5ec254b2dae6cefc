import Documents
package import Wire

// Calls: how they are sent, answered and completed.
extension DDPSession {
    /// How many calls may have not ended: each is kept, with its message and what its stub wrote.
    private static let mostCalls = 65_536

    /// - Throws: `.queueFull` if so many calls would be too many.
    package func checkMayCall(_ count: Int = 1) throws(RealtimeError) {
        guard methods.byID.count <= DDPSession.mostCalls - count else {
            throw RealtimeError(
                .queueFull,
                "a call to \(configuration.server) was refused: \(DDPSession.mostCalls) calls have"
                    + " not ended")
        }
    }

    /// Calls a method that has no stub of the application. The stubs of declared collections run
    /// here. Not inside a stub, see `callInStub`.
    /// - Throws: what the stub throws, if the options say so. Nothing is sent then.
    package mutating func call(
        _ request: DDPRequest, drawing source: inout some DDPRandomSource, now: Instant
    ) throws(DDPError) -> DDPCall {
        guard let write = write(request) else {
            return try enqueue(request, nil, seed: nil, now: now)
        }
        beginStub(now: now)
        let outcome = performWrite(write, drawing: &source)
        return try call(request, outcome, now: now)
    }

    /// Completes a call whose stub has run: `beginStub` came before.
    /// - Throws: what the stub has thrown, if the options say so. Nothing is sent then.
    package mutating func call(
        _ request: DDPRequest, _ outcome: DDPStubOutcome, now: Instant
    ) throws(DDPError) -> DDPCall {
        let (originals, seed) = takeStub()
        let id = methods.nextID()
        if case .failure(let error) = outcome, request.options.throwsStubErrors {
            store.rollBack(originals)
            publishBatch()
            throw error
        }
        publishBatch()
        stubs.wrote(originals, id, areFormer: quiescence.isResetting)
        if case .failure(let error) = outcome {
            log("the stub of \(request.name) failed: \(error)")
        }
        return enqueue(request, id, (try? outcome.get()) ?? .null, seed: seed, now: now)
    }

    private mutating func enqueue(
        _ request: DDPRequest, _ value: EJSON?, seed: String?, now: Instant
    ) throws(DDPError) -> DDPCall {
        enqueue(request, methods.nextID(), value ?? .null, seed: seed, now: now)
    }

    /// Queues a call, and sends it if it may be sent.
    mutating func enqueue(
        _ request: DDPRequest, _ id: CallID, _ value: EJSON = .null, seed: String? = nil,
        purpose: DDPMethodPurpose = .application, now: Instant
    ) -> DDPCall {
        secrets.add(request, isLogin: purpose == .login)
        let message = DDPWriter.method(
            id: id.description, name: request.name, params: request.params, seed: seed)
        var method = DDPMethod(
            id: id, message: message, isWait: request.options.isWait,
            noRetry: request.options.noRetry || isNeverRepeated(request.name))
        method.purpose = purpose
        beginLogin(id, purpose)
        if request.options.timeout > .zero { method.due = now + request.options.timeout }
        let isFirst = methods.append(method, goesFirst: callsGoFirst)
        if stage == .failed {
            failCalls(clientEnded, now)
        } else if isFirst, socket != nil {
            transmit(id, now)
        }
        return DDPCall(id: id, value: value)
    }

    private func isNeverRepeated(_ name: String) -> Bool {
        configuration.noRetryMethods.contains { $0.hasSameBytes(as: name) }
    }

    private mutating func transmit(_ id: CallID, _ now: Instant) {
        guard let method = methods.byID[id], let message = methods.sent(id) else { return }
        stubs.sent(id)
        if method.isWait {
            quiescence.blocking.insert(id)
            measureQuiescence(now)
        }
        send(message, now)
    }

    mutating func sendFirstBlock(_ now: Instant) {
        guard socket != nil else { return }
        for id in methods.takeUnsentOfFirst() { transmit(id, now) }
    }

    // MARK: Answers

    mutating func receivedResult(
        _ text: String, _ result: Result<EJSON, DDPError>, _ now: Instant
    ) {
        guard let id = DDPSession.callID(text), let method = methods.byID[id], method.isSent,
            method.result == nil
        else { return log("the result of a call that nobody waits for") }
        answered(method, result, now)
    }

    private mutating func answered(
        _ method: DDPMethod, _ result: Result<EJSON, DDPError>, _ now: Instant
    ) {
        let result = checkedLogin(method, result)
        methods.answered(method.id, result)
        if !method.isReported { report(.result(method.id, result)) }
        loginAnswered(method, result)
        completeIfDone(method.id, now)
        measureStandstill(now)
    }

    /// The server has sent all documents that a call wrote.
    mutating func methodUpdated(_ id: CallID) {
        guard let method = methods.byID[id], !method.isUpdated, !method.isAbandoned else {
            return log("updated for a call that nobody waits for")
        }
        methods.updated(id)
        releaseStub(id)
        whenFlushed(.method(id))
    }

    /// And they are in the store.
    mutating func methodVisible(_ id: CallID, _ now: Instant) {
        methods.change(id) { $0.isVisible = true }
        completeIfDone(id, now)
    }

    private mutating func completeIfDone(_ id: CallID, _ now: Instant) {
        guard let method = methods.byID[id], method.isVisible, let result = method.result else {
            return
        }
        _ = methods.remove(id)
        complete(method, result, now)
        methods.advance()
        // Inside the hooks of a new connection, the older blocks wait.
        if !isOpening { sendFirstBlock(now) }
    }

    // MARK: A standstill

    /// Calls may wait for documents that only later calls still write, which are not sent before
    /// those are done. Nothing that the server sends ends that, so it has a limit.
    mutating func measureStandstill(_ now: Instant) {
        guard methods.areOnlyWaiting, !stubs.isEmpty, connection != nil, !quiescence.isWaiting,
            configuration.quiescenceLimit > .zero
        else { return standstillDue = nil }
        if standstillDue == nil { standstillDue = now + configuration.quiescenceLimit }
    }

    mutating func endStandstill(_ now: Instant) {
        guard let due = standstillDue, due <= now else { return }
        standstillDue = nil
        log("calls wait for documents that only later calls write; they end without them")
        afterFlush += stubs.takeWaitingCalls()
        flush(now)
    }

    private mutating func complete(
        _ method: DDPMethod, _ result: Result<EJSON, DDPError>, _ now: Instant
    ) {
        let reports = loginCompleted(method, result, now)
        if reports, !method.isReported { report(.completed(method.id, result)) }
    }

    // MARK: The end of a connection

    /// The connection of calls that must not be repeated was lost.
    mutating func abandonCalls() {
        for id in methods.sortedIDs {
            guard let method = methods.byID[id], method.isSent, method.result == nil,
                method.noRetry || method.isReported || hasBeenRepeated(method)
            else { continue }
            methods.change(id) { $0.isAbandoned = true }
            let times =
                method.sentCount > 1
                ? " \(method.sentCount) times" + OptionOwner.ddp.mention(.maxCallRepeats) : ""
            let error = DDPError(
                .invocationFailed,
                reason: "the connection was lost before the result\(times); the call may have run")
            methods.answered(id, .failure(error))
            if !method.isReported { report(.result(id, .failure(error))) }
        }
    }

    /// A call was sent again as often as it may be.
    private func hasBeenRepeated(_ method: DDPMethod) -> Bool {
        let limit = configuration.maximumCallRepeats
        return limit > 0 && method.sentCount > limit
    }

    /// All calls that wait are completed, with their result if they have one. What their stubs
    /// wrote is undone.
    mutating func failCalls(_ error: DDPError, _ now: Instant) {
        let calls = methods.sortedIDs
        for id in calls { releaseStub(id) }
        flushAtOnce(now)
        for id in calls {
            guard let method = methods.remove(id) else { continue }
            if method.result == nil, !method.isReported { report(.result(id, .failure(error))) }
            complete(method, method.result ?? .failure(error), now)
        }
        methods.removeAll()
        completeInterrupted(.failure(error))
    }

    // MARK: Time limits

    mutating func expireCalls(_ now: Instant) {
        for id in methods.takeExpired(now) {
            guard let method = methods.byID[id] else { continue }
            let error = DDPError(
                .timeout, reason: "the time limit of the call has passed; it may have run")
            if method.result == nil { report(.result(id, .failure(error))) }
            report(.completed(id, method.result ?? .failure(error)))
            methods.change(id) { $0.isReported = true }
            guard !method.isSent, method.result == nil else { continue }
            // It was never sent, and will not be.
            methods.answered(id, .failure(error))
            methods.change(id) { $0.isAbandoned = true }
            releaseStub(id)
            afterFlush.append(.method(id))
            flush(now)
        }
    }
}
