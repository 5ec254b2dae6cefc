package import Session
import Synchronization
package import Wire

/// Requests with retries on a loop: the hands to `RESTSession`'s brain. Calls come from any thread;
/// the client's own work (RESTDriver.swift) happens on the loop's.
///
/// Unchecked because its plain fields belong to the loop's owner (see `Loop.enter`). Until the
/// first request is sent, any thread changes options, reachability and the credentials handler
/// while it holds `setting`. After that they never change, and are read without that lock.
package final class RESTClient: ActionDriver<RESTSession>, @unchecked Sendable {
    /// In memory of its own, where threads read it side by side: as a property it would be copied
    /// for each call of its methods (Swift 6.3.1).
    let configuration: UnsafeMutablePointer<RESTConfiguration>

    // Any thread.
    /// Every setter holds it, and so does the first request, after which setters fail.
    private let setting = Mutex<Void>(())
    private let isStarted = Atomic<Bool>(false)
    private let isClosed = Atomic<Bool>(false)
    private let initialCredential = Mutex(InitialCredential())
    private let lastNumber = Atomic<UInt64>(0)
    /// The absolute URL that was parsed last.
    private let lastParsed = Mutex<HTTPURL?>(nil)

    // The loop's owner only.
    /// Outstanding ones by the number their caller knows, and by the session's.
    @exclusivity(unchecked) var calls: [UInt64: RESTCall] = [:]
    @exclusivity(unchecked) var callsByID: [RESTSession.ID: RESTCall] = [:]
    /// The options are the session's now.
    @exclusivity(unchecked) var hasBegun = false
    @exclusivity(unchecked) var reachability: Reachability?
    /// `reachability.changes` when the session last asked what is reachable.
    @exclusivity(unchecked) var knownChanges = 0
    @exclusivity(unchecked) var handles: CurlHandles
    /// Asked for fresh credentials when they were refused.
    @exclusivity(unchecked) var credentials: (() throws -> CredentialsAnswer)?

    package init(base: String?, on loop: Loop) throws(RealtimeError) {
        try loop.checkUsable()
        var initial = RESTConfiguration()
        if let base { try initial.setBase(base) }
        configuration = .allocate(capacity: 1)
        configuration.initialize(to: initial)
        handles = CurlHandles(initial.network, on: loop)
        super.init(RESTSession(initial), on: loop)
    }

    deinit {
        configuration.deinitialize(count: 1)
        configuration.deallocate()
    }

    // MARK: ActionDriver

    override func performNext() -> Bool {
        guard let action = session.nextAction() else { return false }
        perform(action)
        return true
    }

    override func acted() { if calls.isEmpty { setResident(false) } }

    override func loopClosed() { closeNow() }

    // MARK: Options, before the first request

    package func configure(_ change: (inout RESTConfiguration) throws -> Void) throws {
        try setting.withLock { _ in
            try checkNew("an option")
            try change(&configuration.pointee)
        }
    }

    /// Reads options on any thread. The pointer avoids a copy for each request.
    func readOptions<Result: Sendable>(
        _ body: (UnsafePointer<RESTConfiguration>) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        let options = UnsafePointer(configuration)
        if isStarted.load(ordering: .acquiring) { return try body(options) }
        return try setting.withLock { _ throws(RealtimeError) in try body(options) }
    }

    package func setReachability(_ reachability: Reachability?) throws(RealtimeError) {
        guard reachability.map({ $0.loop === loop }) ?? true else {
            throw RealtimeError(.invalidArgument, "the reachability is on another loop")
        }
        // Here and below, what is replaced is released outside the lock: the destroy function of
        // its user data may call us.
        var old: Reachability?
        defer { withExtendedLifetime(old) {} }
        try setting.withLock { _ throws(RealtimeError) in
            try checkNew("a reachability")
            old = exchange(&self.reachability, with: reachability)
        }
    }

    package func setCredentialsHandler(
        _ handler: (() throws -> CredentialsAnswer)?
    ) throws(RealtimeError) {
        var old: (() throws -> CredentialsAnswer)?
        defer { withExtendedLifetime(old) {} }
        try setting.withLock { _ throws(RealtimeError) in
            try checkNew("a callback")
            old = exchange(&credentials, with: handler)
        }
    }

    /// The monitor that was set; nil if none was.
    func currentReachability() -> Reachability? {
        isStarted.load(ordering: .acquiring) ? reachability : setting.withLock { _ in reachability }
    }

    private func checkNew(_ what: String) throws(RealtimeError) {
        try loop.checkUsable()
        guard !isStarted.load(ordering: .acquiring) else {
            throw RealtimeError(.state, "\(what) must be set before the first request is sent")
        }
    }

    // MARK: Use, on any thread

    /// Where a request goes. Of an absolute URL to where the one before went only the target is
    /// looked at: parsing costs a sixth of a short request.
    func url(of path: String) throws(RealtimeError) -> HTTPURL {
        try readOptions { options throws(RealtimeError) in
            try options.pointee.base.url(of: path) { text throws(RealtimeError) in
                if let url = lastParsed.withLock({ $0 })?.sibling(text) { return url }
                let url = try HTTPURL(parsing: text, as: .http)
                lastParsed.withLock { $0 = url }
                return url
            }
        }
    }

    /// Sets the Authorization of requests that have none of their own; nil for none. At any time.
    package func setCredential(_ value: String?) throws(RealtimeError) {
        try HeaderField.validate(name: "Authorization", value: value ?? "")
        try loop.checkUsable()
        let isKept = initialCredential.withLock { initial in
            if !initial.isTaken { initial.value = value }
            return !initial.isTaken
        }
        if !isKept { loop.perform { [self] in session.setCredential(value) } }
    }

    /// What the first request goes out with.
    private struct InitialCredential {
        var value: String?
        var isTaken = false
    }

    func takeInitialCredential() -> String? {
        initialCredential.withLock { initial in
            initial.isTaken = true
            return initial.value
        }
    }

    /// Tells whether there are fresh credentials, after a handler's `.later`.
    /// - Parameter cause: why there are none.
    package func credentialsAreReady(
        _ areFresh: Bool, because cause: RealtimeError? = nil
    ) throws(RealtimeError) {
        try loop.checkUsable()
        loop.perform { [self] in
            session.authorized(areFresh, because: cause, now: Loop.now())
            schedule()
        }
    }

    func checkOpen() throws(RealtimeError) {
        try loop.checkUsable()
        guard !isClosed.load(ordering: .acquiring) else {
            throw RealtimeError(.closed, "the client is closed")
        }
    }

    func send(
        _ request: RESTRequest, _ handlers: RESTHandlers, _ assigned: (UInt64) -> Void
    ) -> UInt64 {
        if !isStarted.load(ordering: .acquiring) {
            setting.withLock { _ in isStarted.store(true, ordering: .releasing) }
        }
        let number = lastNumber.add(1, ordering: .relaxed).newValue
        handlers.assigned?(number)
        assigned(number)
        let call = RESTCall(number, request, handlers, by: self)
        loop.perform { [self] in submit(call) }
        return number
    }

    /// Ends a request, whose terminal callback says so; one that has ended is left alone.
    package func cancel(_ number: UInt64) throws(RealtimeError) {
        try loop.checkUsable()
        loop.perform { [self] in
            guard let call = calls[number] else { return }
            call.drop()
            session.cancel(call.id, now: Loop.now())
            schedule()
        }
    }

    /// Stops, or goes on, handing over a streamed answer.
    package func pause(_ number: UInt64, _ isPaused: Bool) throws(RealtimeError) {
        try loop.checkUsable()
        loop.perform { [self] in calls[number]?.pause(isPaused) }
    }

    /// The source of a request body has more.
    package func resumeBody(_ number: UInt64) throws(RealtimeError) {
        try loop.checkUsable()
        loop.perform { [self] in calls[number]?.resumeBody() }
    }

    /// Ends all requests. On the loop's thread, and while nobody runs the loop, each has had its
    /// terminal callback when this returns; else they have it in the loop's next turn.
    package func close() {
        guard !loop.isForked, !isClosed.exchange(true, ordering: .acquiringAndReleasing) else {
            return
        }
        loop.perform { [self] in closeNow() }
    }
}
