import CShims
import Session
import Synchronization
import Wire

// The work of an event source on its loop's thread.
extension EventSourceConnection {
    func begin() {
        guard !isClosed, session == nil else { return }
        takeHandlers()
        takeOptions()
        var initial = configuration.lastEventID
        if let path = idLocation.path {
            let stored = openStore(path)
            initial = initial ?? stored
        }
        var session = EventSourceSession(configuration, lastEventID: initial ?? "")
        var limits = configuration.limits
        limits.owner = configuration.owner
        parser.deinitialize(count: 1)
        parser.initialize(
            to: EventStreamParser(
                limits: limits, lastEventID: Array((initial ?? "").utf8),
                reportsComments: handlers.comment != nil))
        publish { $0.lastEventID = initial ?? "" }
        session.setOnline(isReachable, now: Loop.now(), random: 0)
        session.setPaused(!mayDeliver, now: Loop.now())
        session.start(now: Loop.now())
        self.session = session
        if let unusable { return giveUp(unusable) }
        noteWait()
        if !isClosed { updateTimer() }
    }

    /// Waits for a running handler, which may hold pointers into the parser's memory.
    func endBody() {
        if isReading {
            endsBody = true
        } else {
            parser.pointee.endBody()
        }
    }

    // MARK: The stream

    /// Parses and delivers until the source is closed, paused or reconnects.
    /// - Returns: how many bytes were used.
    func read(_ input: UnsafeRawBufferPointer) -> Int {
        let attempt = attemptNumber
        var used = 0
        isReading = true
        defer {
            isReading = false
            recentListeners.removeAll()
            noteID()
            if endsBody {
                endsBody = false
                parser.pointee.endBody()
            }
        }
        do throws(RealtimeError) {
            while mayDeliver, attempt == attemptNumber {
                switch try next(input, &used) {
                case .needMoreBytes: return used
                // Another thread may have closed the source while this was parsed.
                case .comment where isClosed, .retry where isClosed: return used
                case .event(let event):
                    // The id of an event that no handler gets must not be stored.
                    if !deliver(event) { knownIDs = parser.pointee.idCount }
                    noteIDOfEvent()
                case .comment(let text): handlers.comment?(text)
                case .retry(let milliseconds):
                    session?.setReconnectionTime(milliseconds: milliseconds)
                    let used = session?.reconnectionMilliseconds ?? milliseconds
                    publish { $0.reconnectionTime = used }
                    handlers.retry?(milliseconds)
                }
            }
        } catch {
            let name = session?.request.url.displayName ?? configuration.url.displayName
            giveUp(RealtimeError(error.code, "\(name): \(error.message)"))
        }
        return used
    }

    /// Parses up to a step that the caller must handle. Events that go to exactly one handler are
    /// delivered here.
    private func next(
        _ input: UnsafeRawBufferPointer, _ used: inout Int
    ) throws(RealtimeError) -> EventStreamParser.Step {
        guard hasDispatched, onAny == nil, onEvent == nil, inbox == nil else {
            return try parser.pointee.next(input, &used)
        }
        if !listeners.isEmpty { return try nextOfTypes(input, &used) }
        guard let onMessage else { return try parser.pointee.next(input, &used) }
        return try nextMessages(input, &used, onMessage)
    }

    /// `onMessage` is an argument so that it is retained once for all events of this read.
    private func nextMessages(
        _ input: UnsafeRawBufferPointer, _ used: inout Int,
        _ onMessage: (StreamEvent) -> Void
    ) throws(RealtimeError) -> EventStreamParser.Step {
        let (attempt, age) = (attemptNumber, handlersAge)
        while true {
            let step = try parser.pointee.next(input, &used)
            guard case .event(let event) = step, !isClosed, age == handlersAge else { return step }
            if event.isMessage { onMessage(event) }
            noteIDOfEvent()
            guard mayDeliver, attempt == attemptNumber else { return .needMoreBytes }
        }
    }

    private func nextOfTypes(
        _ input: UnsafeRawBufferPointer, _ used: inout Int
    ) throws(RealtimeError) -> EventStreamParser.Step {
        // Retained once for all events of this read.
        let recent = recentListeners
        let (attempt, age) = (attemptNumber, handlersAge)
        while true {
            let step = try parser.pointee.next(input, &used)
            guard case .event(let event) = step, !isClosed, age == handlersAge, !event.isMessage,
                let only = recent.only(of: event.type, in: listeners)
            else { return step }
            only(event)
            noteIDOfEvent()
            guard mayDeliver, attempt == attemptNumber else { return .needMoreBytes }
        }
    }

    /// - Returns: false if the source was closed before any handler had the event.
    private func deliver(_ event: StreamEvent) -> Bool {
        guard !isClosed else { return false }
        if !hasDispatched {
            hasDispatched = true
            session?.dispatched()
        }
        var isTaken = false
        if let onMessage, event.isMessage {
            onMessage(event)
            isTaken = true
        }
        if !listeners.isEmpty, callListeners(event) { isTaken = true }
        if let onAny, !isClosed {
            onAny(event)
            isTaken = true
        }
        if let onEvent, !isClosed {
            onEvent(event)
            isTaken = true
        }
        guard !isTaken, !isClosed else { return isTaken }
        if let inbox, onAny == nil, onEvent == nil {
            keep(
                ReceivedMemory(
                    id: event.id, hadID: event.hadID, event: event.type, data: event.data),
                in: inbox)
        }
        return true
    }

    /// - Returns: whether there is a listener for the event.
    private func callListeners(_ event: StreamEvent) -> Bool {
        var isTaken = false
        for listener in recentListeners.of(event.type, in: listeners) {
            guard !isClosed else { break }
            // Skip a listener that was removed meanwhile.
            guard listeners.contains(listener.token) else { continue }
            listener.handle?(event)
            isTaken = true
        }
        return isTaken
    }

    /// Counts bytes before decoding, because empty blocks keep a compressed stream alive.
    func noteBytes(_ now: Instant) {
        guard configuration.idleTimeout > .zero, let bytes = transfer?.bytesReceived,
            bytes != notedBytes
        else { return }
        notedBytes = bytes
        session?.received(now: now)
    }

    // MARK: The user

    func restartNow() {
        guard !isClosed, let state = session?.state, state != .closed else { return }
        dropConnection()
        session?.restart(now: Loop.now())
        setState(.connecting)
        updateTimer()
        // In the next turn, because handlers must not run inside `restart`.
        if session?.waitsForNetwork == true { loop.enqueue { [self] in noteWait() } }
    }

    func readHeld() {
        guard !held.isEmpty, !isReading else { return }
        var input = ByteBuffer()
        swap(&input, &held)
        let attempt = attemptNumber
        let used = read(input.readable)
        guard !isClosed, attempt == attemptNumber else { return }
        input.consume(used)
        if !input.isEmpty {
            swap(&input, &held)
        } else if let end = heldEnd {
            transferEnded(end.failure)
        }
    }
}
