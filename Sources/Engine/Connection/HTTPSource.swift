import Session
import Wire

/// What asks a server for messages by HTTP, again and again: an event source or a long poll. Here
/// is what both do on their loop's thread: options that change between attempts, credentials,
/// failures and their telling.
protocol HTTPSource: HTTPTransferOwner, TimerTarget, ReachabilityObserver, Sendable {
    associatedtype Session: HTTPSourceSession
    associatedtype Handlers: HTTPSourceHandlers

    /// What an attempt does, for the log.
    static var purpose: String { get }
    /// Whether a server may end an answer inside of its content coding.
    static var mayEndInCoding: Bool { get }

    // Any thread.
    var loop: Loop { get }
    var options: StagedOptions<Session.Configuration> { get }
    var isClosed: Bool { get }
    func close()

    // The loop's owner only.
    /// As they were when the attempt began.
    var configuration: Session.Configuration { get set }
    var handlers: Handlers { get }
    var session: Session? { get set }
    var transfer: HTTPTransfer? { get set }
    var timer: LoopTimer { get }
    var upkeep: HTTPSourceUpkeep { get set }

    func takeHandlers()
    func dropHandlers()
    /// The transfer has begun.
    func transferBegan()
    /// An answer has come.
    /// - Parameters:
    ///   - body: of one that refuses the beginning, and no more of it comes; nil of another one.
    ///   - start: when its request could go out.
    func answered(_ head: ResponseHead, body: [UInt8]?, requestStarted start: Instant?)
    /// It is over; nil for an answer that came whole.
    func transferEnded(_ failure: HTTPFailure?)
    /// Drops what there is of an attempt.
    func dropTransfer()
    /// Before a failure is told.
    func note(_ failure: HTTPSourceFailure)
    func setClosed()
    func updateTimer()
}

/// What an HTTP source keeps between its calls.
struct HTTPSourceUpkeep {
    var reachability: Reachability?
    /// An answer that refuses, while its body comes.
    var refusal: HTTPRefusal?
    /// The answer that asked for credentials.
    var refused: HTTPResponse?
    /// In a handler where options may be changed.
    var mayReconfigure = false
    /// The last connection may be dead: HTTP/2 would go on using it.
    var needsFreshConnection = false
    /// A failure that nobody has heard yet.
    var untold: HTTPSourceFailure?
    /// Of a Spreadbot connection, which says itself what comes of its legs.
    var isLeg = false
}

/// The handlers that all of them have.
protocol HTTPSourceHandlers: Sendable {
    var error: ((HTTPSourceFailure) -> Void)? { get }
    /// Failures too, before `error`, which counts as the one that hears them.
    var failed: ((HTTPSourceFailure) -> Void)? { get }
    /// An attempt of this number begins: options may be changed; false closes.
    var request: ((Int) throws -> Bool)? { get }
    var credentials: ((HTTPResponse) throws -> CredentialsAnswer)? { get }
}

extension HTTPSource {
    // MARK: Options

    /// What was set since counts from now on.
    func takeOptions() {
        let options = options.take()
        configuration = options.configuration
        // Without a monitor everything counts as reachable.
        let wanted = options.reachability ?? (try? Reachability.of(loop))
        if wanted !== upkeep.reachability {
            upkeep.reachability?.remove(self)
            wanted?.add(self)
            upkeep.reachability = wanted
        }
        session?.setOnline(isReachable, now: Loop.now(), random: randomFraction())
    }

    var isReachable: Bool {
        upkeep.reachability?.isReachable(configuration.url, by: configuration.network) ?? true
    }

    func reachabilityChanged() {
        session?.setOnline(isReachable, now: Loop.now(), random: randomFraction())
        updateTimer()
    }

    /// Runs a handler that may change options.
    private func reconfiguring<Result>(_ body: () throws -> Result) throws -> Result {
        upkeep.mayReconfigure = true
        defer { upkeep.mayReconfigure = false }
        return try body()
    }

    // MARK: Attempts

    func attempt() {
        guard let attempt = session?.attempt, !isClosed else { return }
        if let request = handlers.request {
            do {
                guard try reconfiguring({ try request(attempt) }) else { return close() }
            } catch {
                return giveUp(error)
            }
            guard !isClosed else { return }
        }
        takeOptions()
        // What they say may be out of reach.
        guard session?.mayBegin() ?? false else { return updateTimer() }
        session?.beginAttempt(configuration, now: Loop.now())
        send()
    }

    func send() {
        guard let request = session?.request else { return }
        dropTransfer()
        var options = HTTPTransferOptions()
        options.connectTimeout = configuration.http.connectTimeout
        options.decodes = configuration.http.compression
        options.mayEndInCoding = Self.mayEndInCoding
        options.offersHTTP2 = configuration.http.http2
        options.takesFreshConnection = upkeep.needsFreshConnection
        upkeep.needsFreshConnection = false
        Log.write(
            .debug,
            "\(request.url.displayName): \(Self.purpose), attempt \(session?.attempt ?? 0)")
        do throws(RealtimeError) {
            let multi = try CurlMulti.of(loop)
            let handle = try CurlHandle(configuration.network, to: request.url, on: multi)
            transfer = try HTTPTransfer(request, options, by: handle, multi: multi, owner: self)
            transferBegan()
        } catch {
            transferEnded(HTTPFailure(error))
        }
        updateTimer()
    }

    /// Drops what there is of an attempt with its connection, which said nothing for too long.
    func dropConnection() {
        transfer?.close(connectionToo: true)
        upkeep.needsFreshConnection = true
        dropTransfer()
    }

    /// It goes nowhere from here.
    func giveUp(_ error: any Error) {
        let error = error as? RealtimeError ?? RealtimeError(.cancelled, "\(error)")
        guard let failure = session?.fail(error, status: 0) else { return }
        dropTransfer()
        tell(failure)
    }

    // MARK: Answers

    func received(_ head: ResponseHead, by transfer: HTTPTransfer) {
        guard transfer === self.transfer, !isClosed else { return }
        guard session?.refuses(head) == true else {
            return answered(head, body: nil, requestStarted: transfer.requestStarted)
        }
        upkeep.refusal = HTTPRefusal(head, transfer.requestStarted, now: Loop.now())
        // A pause holds back what is delivered, not the reason why nothing is.
        transfer.pause(false)
        updateTimer()
    }

    /// What the open handler is told.
    /// - Parameter head: of the answer that opened it.
    func opened(_ head: ResponseHead?) -> Opened {
        var opened = transfer?.opened(head) ?? Opened()
        if opened.remoteAddress.isEmpty {
            opened.remoteAddress = configuration.network.unixSocket ?? ""
        }
        return opened
    }

    /// Takes bytes of the body of an answer that refuses.
    /// - Returns: false when there is no such answer.
    func takeRefusal(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let refusal = upkeep.refusal else { return false }
        refusal.take(bytes)
        if refusal.isFull { _ = endRefusal() }
        return true
    }

    /// Judges an answer that refuses by what has come of it.
    /// - Returns: false when there is none.
    func endRefusal() -> Bool {
        guard let refusal = upkeep.refusal else { return false }
        upkeep.refusal = nil
        answered(refusal.head, body: refusal.body, requestStarted: refusal.requestStarted)
        return true
    }

    // MARK: Credentials

    func askCredentials(_ response: HTTPResponse) {
        dropTransfer()
        upkeep.refused = response
        updateTimer()
        // Before it is asked: another thread may have them before it has answered.
        options.awaitCredentials()
        do {
            let answer = try reconfiguring {
                try handlers.credentials?(response) ?? .none
            }
            guard session?.isAuthorizing == true, !isClosed else { return }
            switch answer {
            case .later: return
            case .ready: authorize()
            case .none: refuseCredentials()
            }
        } catch {
            giveUp(error)
        }
    }

    /// The answer that was left open.
    func credentialsCame(_ fresh: Bool, because cause: RealtimeError?) {
        guard !isClosed else { return }
        if fresh { authorize() } else { refuseCredentials(because: cause) }
    }

    private func refuseCredentials(because cause: RealtimeError? = nil) {
        guard session?.isAuthorizing == true, let response = upkeep.refused else { return }
        upkeep.refused = nil
        _ = options.take()
        let failure = cause.map { session?.fail($0, status: response.status) }
        if let failure = failure ?? session?.unauthorized(response) { tell(failure) }
    }

    func authorize() {
        guard session?.isAuthorizing == true else { return }
        upkeep.refused = nil
        takeOptions()
        session?.authorized(configuration, now: Loop.now())
        send()
    }

    // MARK: Telling

    /// What users want to know, unless a Spreadbot connection tells them.
    func log(_ level: LogLevel, _ line: @autoclosure () -> String) {
        Log.write(upkeep.isLeg ? .debug : level, line())
    }

    func tell(_ failure: HTTPSourceFailure) {
        guard !isClosed else { return }
        note(failure)
        // Whether and when a leg is tried again is not its own to say.
        let line = upkeep.isLeg ? failure.error.message : failure.line
        log(failure.isFatal ? .error : .warning, line)
        updateTimer()
        handlers.failed?(failure)
        guard !isClosed else { return }
        if let error = handlers.error {
            error(failure)
        } else {
            upkeep.untold = failure
        }
        if failure.isFatal { finish() }
    }

    func handlersChanged() {
        takeHandlers()
        guard upkeep.untold != nil, handlers.error != nil else { return }
        loop.enqueue { [self] in tellUntold() }
    }

    private func tellUntold() {
        guard let failure = upkeep.untold, let error = handlers.error, !isClosed else { return }
        upkeep.untold = nil
        error(failure)
        if failure.isFatal { dropHandlers() }
    }

    /// Nothing more is told.
    func finish() {
        setClosed()
        log(.info, "\(configuration.url.displayName) is closed")
        _ = options.take()
        loop.disarm(timer)
        upkeep.reachability?.remove(self)
        if upkeep.untold == nil || isClosed { dropHandlers() }
    }
}
