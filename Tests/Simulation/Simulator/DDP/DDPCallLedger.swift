import Session
import Wire

/// What the user has called, what was sent, and what was reported.
final class DDPCallLedger {
    struct Call {
        let plan: DDPPlan.Call
        let madeAt: Instant
        /// What the stub returned.
        var value: EJSON?
        var timesSent = 0
        var lastLink: UInt64 = 0
        var result: Result<EJSON, DDPError>?
        var isCompleted = false
    }

    private let world: World
    private let putOff: DDPPutOff
    private let server: DDPServer
    private(set) var calls: [UInt64: Call] = [:]
    /// Sent on this connection, and not completed.
    private(set) var inFlight: Set<UInt64> = []
    /// Calls that were sent on this connection, and whose time limit has passed: the server does
    /// them nevertheless, and the client waits for their documents.
    private(set) var expired: Set<UInt64> = []
    private var link: UInt64 = 0
    /// The calls in the order in which they may be sent.
    private var order: [UInt64] = []
    /// How many of them were made by the handler of this connection: they are the first.
    private var greetings = 0
    /// The position of the last call that was sent on this connection.
    private var lastSent = -1
    /// Calls that the machine has made by itself: logins with a token.
    private var own: Set<UInt64> = []

    init(_ world: World, _ server: DDPServer, _ putOff: DDPPutOff) {
        self.putOff = putOff
        self.world = world
        self.server = server
    }

    var outstanding: [UInt64] {
        calls.filter { !$0.value.isCompleted && !own.contains($0.key) }.keys.sorted()
    }

    /// A login has not ended, or the machine repeats its own when the server allows that.
    var isLoggingIn: Bool { isLoggingIn { _ in true } }

    /// The same without the logins that callbacks have made at this moment: what is reported now
    /// may have happened before them.
    var wasLoggingIn: Bool { isLoggingIn { $0.madeAt < world.now } }

    private func isLoggingIn(_ counts: (Call) -> Bool) -> Bool {
        let logins = calls.filter { id, call in
            call.plan.name == "login" && (own.contains(id) || counts(call))
        }
        guard !logins.contains(where: { !own.contains($0.key) && !$0.value.isCompleted }) else {
            return true
        }
        let last = logins.filter { own.contains($0.key) && $0.value.lastLink == link }
            .max { $0.key < $1.key }
        guard let (id, login) = last else { return false }
        guard case .failure(let error)? = login.result, login.isCompleted else {
            return !login.isCompleted
        }
        return error.code == "too-many-requests" && !isOutdated(id)
    }

    /// Whether the user has logged in or out since, so that this login is not repeated.
    private func isOutdated(_ login: UInt64) -> Bool {
        calls.contains { id, call in
            guard id > login, ["login", "logout"].contains(call.plan.name),
                case .success? = call.result
            else { return false }
            return true
        }
    }

    /// Whether a login of another user has succeeded and waits for its documents: if the connection
    /// is lost, the next one logs that user in.
    func isLoggingInAnother(than user: String?) -> Bool {
        calls.values.contains { call in
            guard call.plan.name == "login", !call.isCompleted,
                case .success(.object(let result))? = call.result
            else { return false }
            return result["id"] != user.map { EJSON.string($0) }
        }
    }

    /// - Parameter id: on the wire.
    func isWait(_ id: String?) -> Bool {
        id.flatMap { UInt64($0) }.flatMap { calls[$0]?.plan.isWait } ?? false
    }

    /// Its time limit has passed: it ends without its documents.
    func isOverdue(_ id: UInt64) -> Bool {
        guard let call = calls[id], call.plan.timeout > .zero else { return false }
        return call.madeAt + call.plan.timeout <= world.now
    }

    /// Whether the error means that the client waits no more for what the call wrote: it must not
    /// be repeated, or its time limit has passed before it was sent on this connection.
    func isGivenUp(_ id: UInt64, _ error: DDPError) -> Bool {
        error.kind == .invocationFailed || error.kind == .timeout && calls[id]?.lastLink != link
    }

    /// The calls that are not sent again, though they have no answer: their time limit has passed,
    /// or another login replaces them.
    var withdrawn: [UInt64] {
        calls.filter { id, call in
            guard case .failure(let error)? = call.result else {
                return own.contains(id) && call.result == nil
            }
            return error.kind == .timeout
        }.keys.sorted()
    }

    /// - Parameter goesFirst: whether it was made by the handler of a new connection.
    func made(_ id: UInt64, _ plan: DDPPlan.Call, value: EJSON?, goesFirst: Bool = false) {
        world.require(calls[id] == nil, "the id of call \(id) was used before")
        calls[id] = Call(plan: plan, madeAt: world.now, value: value)
        order.insert(id, at: goesFirst ? greetings : order.count)
        if goesFirst { greetings += 1 }
        if plan.isWait { world.count("wait") }
    }

    /// A connection has opened.
    func opened(_ link: UInt64) {
        self.link = link
        (inFlight, expired) = ([], [])
        (lastSent, greetings) = (-1, 0)
    }

    func sent(_ text: String, name: String) {
        guard let id = UInt64(text) else { return world.fail("the call \(text) is sent") }
        if calls[id] == nil {
            world.require(name == "login", "call \(id) is sent, and nobody made it")
            own.insert(id)
            calls[id] = Call(plan: DDPPlan.Call(name: name, isWait: true), madeAt: world.now)
        }
        guard let call = calls[id] else { return }
        world.require(!call.isCompleted, "call \(id) is sent after its end")
        world.require(call.result == nil, "call \(id) is sent after its result")
        world.require(call.lastLink != link, "call \(id) is sent twice on a connection")
        world.require(
            !call.plan.noRetry || call.timesSent == 0, "call \(id) must not be repeated")
        let others = inFlight.subtracting([id])
        world.require(
            others.isEmpty || !call.plan.isWait, "call \(id) does not wait for \(others.sorted())")
        for other in others where calls[other]?.plan.isWait == true {
            world.fail("call \(id) does not wait for the end of \(other)")
        }
        if !own.contains(id) {
            let position = order.firstIndex(of: id) ?? -1
            world.require(position > lastSent, "call \(id) is sent too late")
            lastSent = position
        }
        if call.timesSent > 0 { world.count("resent") }
        calls[id]?.timesSent += 1
        calls[id]?.lastLink = link
        inFlight.insert(id)
    }

    // MARK: Reports

    func result(_ id: UInt64, _ result: Result<EJSON, DDPError>, _ status: DDPStatus) {
        guard let call = calls[id] else { return endedUnsent(id, result) }
        world.require(call.result == nil, "a second result of call \(id)")
        calls[id]?.result = result
        let runs = server.runs[text(id)] ?? []
        switch result {
        case .success(let value):
            let isTheirs = runs.contains { run in
                !run.hasFailed && (try? EJSON(parsing: run.outcome)) == value
            }
            world.require(isTheirs, "call \(id) has the result \(value.text)")
        case .failure(let error): failed(id, call, error, runs, status)
        }
    }

    /// A login that the machine has made ends with the client.
    private func endedUnsent(_ id: UInt64, _ result: Result<EJSON, DDPError>) {
        if case .failure(let error) = result, error.kind == .disconnected { return }
        world.fail("the end of call \(id), which nobody made")
    }

    /// Whether the last login, in the order of its runs, is the one that the client heard of.
    var areLoginsCertain: Bool {
        !calls.contains { id, call in
            call.plan.name == "login"
                && Set((server.runs[text(id)] ?? []).map(\.hasFailed)).count > 1
        }
    }

    private func failed(
        _ id: UInt64, _ call: Call, _ error: DDPError, _ runs: [DDPServerRun],
        _ status: DDPStatus
    ) {
        switch error.kind {
        case .server:
            world.count("call failed on the server")
            world.require(runs.contains { $0.hasFailed }, "call \(id) has not failed")
        case .stub: world.fail("call \(id) has failed in its stub")
        case .invocationFailed:
            world.count("call abandoned")
            // A hasty user may connect again just before the driver sends it.
            let wasSent = call.timesSent == 1 || server.plan.hasty > 0 && call.timesSent == 0
            world.require(call.plan.noRetry && wasSent, "call \(id) was not lost")
        case .timeout:
            world.count("call timed out")
            world.require(
                call.plan.timeout > .zero && putOff.isTime(call.madeAt + call.plan.timeout),
                "call \(id) has time")
        case .disconnected:
            world.count("call disconnected")
            world.require(status == .failed, "call \(id) can be sent again")
        case .closed: world.require(isClosed, "call \(id) ends without the client")
        }
    }

    var isClosed = false

    func completed(_ id: UInt64, _ result: Result<EJSON, DDPError>) {
        guard let call = calls[id] else { return endedUnsent(id, result) }
        world.require(!call.isCompleted, "call \(id) is completed twice")
        var isOverdue = false
        if case .failure(let error) = result { isOverdue = error.kind == .timeout }
        // A login may end with the result of the next connection's.
        let isLogin = call.plan.name == "login" && call.lastLink != link
        world.require(
            call.result == result || isOverdue || isLogin, "call \(id) ends with another result")
        calls[id]?.isCompleted = true
        if inFlight.remove(id) != nil, isOverdue { expired.insert(id) }
        world.count("completed")
    }

    // MARK: The end

    func verify() {
        world.require(outstanding.isEmpty, "calls \(outstanding) are not completed")
        for (id, call) in calls {
            let runs = server.runs[text(id)] ?? []
            if call.plan.noRetry {
                world.require(runs.count <= 1, "call \(id) ran \(runs.count) times")
            }
            guard let value = call.value, value != .null, let first = runs.first,
                !first.hasFailed, call.plan.name.hasPrefix("add") || call.plan.name == "insert"
            else { continue }
            world.require(
                (try? EJSON(parsing: first.outcome)) == value,
                "call \(id) drew \(value.text), and the server \(first.outcome)")
            world.count("drew the same id")
        }
    }

    private func text(_ id: UInt64) -> String { "\(id)" }
}
