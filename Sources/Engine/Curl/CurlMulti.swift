import CShims
import Session
import Synchronization
import Wire

/// What a multi handle works for.
protocol CurlUser: AnyObject {
    var easy: UnsafeMutableRawPointer { get }
    /// Its place among the multi handle's users; nil when it is none.
    var seat: Int? { get set }
    /// Its connection is there.
    var isConnected: Bool { get }
    /// The TLS connection it is on; nil for none.
    var tlsGuard: UnsafeMutablePointer<shim_tls_guard>? { get }
    /// Tells its TLS connection how much it has carried for this user.
    func creditTLS()
    /// Its TLS connection receives a flood of bytes that carry nothing: the user must leave it.
    func flooded()
    /// libcurl is done with it; told in the multi handle's turn.
    func finished(_ result: CURLcode)
    /// What libcurl handed over meanwhile can be told: no call of libcurl's is under way.
    func deliver()
    /// Has libcurl read nothing more for it, until `resume`.
    /// - Returns: whether it waits now and did not before.
    func suspend() -> Bool
    func resume()
    /// The multi handle is over.
    func multiClosed()
}

/// libcurl's multi handle on a loop: its sockets are in the loop's epoll, its one timer in the
/// loop's heap (`curl_multi_socket_action`).
///
/// libcurl must not be called from its own callbacks, and users' callbacks may call anything. So
/// what libcurl hands over is noted by who receives it (`hasNews`), and told when libcurl has
/// returned; the end of an exchange in the multi handle's turn.
///
/// Unchecked because its fields belong to the loop's owner (see `Loop.enter`).
final class CurlMulti: TimerTarget, LoopLocal, LoopMultiplexer, @unchecked Sendable {
    private let multi: UnsafeMutableRawPointer
    /// Which holds this one; those who use it hold both.
    unowned(unsafe) let loop: Loop
    private let timer = LoopTimer()
    @exclusivity(unchecked) private var armedAt: Instant?
    /// When libcurl wants to be called.
    @exclusivity(unchecked) private var dueAt: Instant?
    let sockets: CurlSockets
    /// What its TLS connections share.
    let tls: UnsafeMutablePointer<shim_tls_turn>
    /// By their seats; libcurl keeps each one's number for us.
    @exclusivity(unchecked) private var users: [(any CurlUser)?] = []
    @exclusivity(unchecked) private var freeSeats: [Int] = []
    @exclusivity(unchecked) private var news: [any CurlUser] = []
    /// Those with more of a body than this turn may tell.
    @exclusivity(unchecked) private var postponed: [any CurlUser] = []
    /// Seats of those who lost a connection that was not made.
    @exclusivity(unchecked) private var stranded: [Int] = []
    /// Those that may keep libcurl busy for long. They go on one by one: otherwise libcurl would
    /// read for all of them in any call.
    @exclusivity(unchecked) private var suspended: [any CurlUser] = []
    /// A call of libcurl's was long.
    @exclusivity(unchecked) private var wasBusy = false
    let decoding = DecodingTurns()
    /// Storage for what comes, lent to one user after the other.
    @exclusivity(unchecked) private var spare = ByteBuffer()
    private static let spareBytes = 512 << 10
    @exclusivity(unchecked) private var isInTurn = false
    /// Inside a call of libcurl's.
    @exclusivity(unchecked) private var isActing = false
    /// libcurl wants to be called again at once.
    @exclusivity(unchecked) private var isDue = false
    /// How many rounds there were in its turns.
    @exclusivity(unchecked) private var rounds: UInt64 = 0
    /// How many there are in a turn of the loop, before others have theirs.
    private static let roundsPerTurn: UInt64 = 16
    /// And for how long. libcurl reads up to a hundred times from a connection in a round, and a
    /// server can fill that with bytes that deliver nothing, such as chunk extensions.
    private static let turnTime = Duration.milliseconds(5)
    /// A call of libcurl's that took so long read what delivers nothing.
    private static let longCall = Duration.milliseconds(3)
    /// Bytes of answers that owners received since its last turn ended. They are limited, because a
    /// few bytes can be an event.
    @exclusivity(unchecked) private var told = 0
    @exclusivity(unchecked) private var isOpen = true
    private let forkGeneration = shim_fork_generation()

    private convenience init(loop: Loop) throws(RealtimeError) {
        let code = shim_curl_global_init()
        guard code == CURLE_OK, let multi = curl_multi_init() else {
            throw RealtimeError(.system, "libcurl could not be initialised")
        }
        self.init(multi, on: loop)
    }

    private init(_ multi: UnsafeMutableRawPointer, on loop: Loop) {
        shim_curl_keep_wakeup_from_children(multi)
        self.multi = multi
        self.loop = loop
        sockets = CurlSockets(epoll: loop.descriptor)
        tls = .allocate(capacity: 1)
        tls.initialize(to: shim_tls_turn())
        beginTurn(ready: 1)
        let me = Unmanaged.passUnretained(self).toOpaque()
        _ = shim_curl_multi_set_socket(multi, CurlMulti.socketChanged, me)
        _ = shim_curl_multi_set_timer(multi, CurlMulti.timerChanged, me)
        loop.attach(self)
    }

    /// The loop's, made at the first exchange or connection.
    static func of(_ loop: Loop) throws(RealtimeError) -> CurlMulti {
        try loop.local(CurlMulti.self) { () throws(RealtimeError) in try CurlMulti(loop: loop) }
    }

    deinit {
        close()
        // A forked child's connections still refer to it.
        if !isForked { tls.deallocate() }
    }

    func add(_ user: any CurlUser) throws(RealtimeError) {
        guard isOpen else { throw RealtimeError(.closed, "the loop was freed") }
        let code = curl_multi_add_handle(multi, user.easy)
        guard code == CURLM_OK else {
            throw RealtimeError(.system, "libcurl: \(String(cString: curl_multi_strerror(code)))")
        }
        let seat = freeSeats.popLast() ?? users.count
        if seat == users.count { users.append(user) } else { users[seat] = user }
        user.seat = seat
        _ = shim_curl_set_pointer(
            user.easy, CURLOPT_PRIVATE, UnsafeMutableRawPointer(bitPattern: seat))
    }

    func remove(_ user: any CurlUser) {
        guard isOpen, let seat = user.seat else { return }
        user.seat = nil
        users[seat] = nil
        freeSeats.append(seat)
        curl_multi_remove_handle(multi, user.easy)
    }

    /// Has `user.deliver()` called once, when libcurl has returned.
    func hasNews(_ user: any CurlUser) {
        news.append(user)
        // What libcurl notes is told when it returns; a call of a user's waits for the loop's turn.
        if !isActing { schedule() }
    }

    /// Lends storage to a buffer that has none.
    func lend(_ buffer: inout ByteBuffer) {
        if buffer.capacity == 0 { swap(&buffer, &spare) }
    }

    /// So many bytes of an answer were told.
    func hasTold(_ count: Int) { told += count }

    /// Takes the storage of an empty buffer back.
    func takeBack(_ buffer: inout ByteBuffer) {
        guard buffer.isEmpty, buffer.capacity > 0 else { return }
        if spare.capacity < buffer.capacity { swap(&buffer, &spare) }
        buffer.removeAll(keeping: 0)
        spare.removeAll(keeping: CurlMulti.spareBytes)
    }

    /// Whether this is a forked child's copy: its connections are the parent's, and closing TLS
    /// would speak on them.
    var isForked: Bool { forkGeneration != shim_fork_generation() }

    /// Ends everything: what still connects is told.
    func close() {
        guard isOpen, !isForked else { return }
        // None begins any more; who is told may take itself and others away.
        for seat in users.indices { users[seat]?.multiClosed() }
        users = []
        news = []
        postponed = []
        suspended = []
        decoding.removeAll()
        isOpen = false
        curl_multi_cleanup(multi)
    }

    // MARK: LoopMultiplexer

    func isReady(_ socket: Int32, _ events: UInt32) { sockets.isReady(socket, events) }

    var progress: ReadyProgress {
        var progress = sockets.progress
        progress.rounds = rounds
        progress.roundsLeft = UInt64(max(suspended.count, isDue ? 1 : 0))
        return progress
    }

    func beginTurn(ready: Int) {
        shim_tls_begin_turn(tls, UInt32(clamping: ready + sockets.waiting))
    }

    /// Has libcurl look at the sockets that are ready, for a time: a server can keep it busy with
    /// each for milliseconds. The rest follow in the next turn, before those that are ready then.
    func handleReady() {
        guard sockets.hasReady else { return }
        if wasBusy {
            wasBusy = false
            for socket in sockets.allReady { suspend(userOf: socket) }
        }
        let start = Loop.now()
        var begun = start
        while isOpen, !loop.isClosed.load(ordering: .relaxed),
            let (socket, events) = sockets.nextReady()
        {
            var mask: Int32 = 0
            if events & PollEvents.readable != 0 { mask |= CURL_CSELECT_IN }
            if events & PollEvents.writable != 0 { mask |= CURL_CSELECT_OUT }
            if events & PollEvents.broken != 0 { mask |= CURL_CSELECT_ERR }
            act(socket, mask)
            if noteTime(since: begun) { suspend(userOf: socket) }
            deliverNews()
            schedule()
            begun = Loop.now()
            if begun - start >= CurlMulti.turnTime { return }
        }
    }

    func timeReached(_ now: Instant) {
        armedAt = nil
        guard let dueAt else { return }
        if dueAt <= now { return perform(CURL_SOCKET_BAD, 0) }
        arm(dueAt)
    }

    private func arm(_ time: Instant) {
        armedAt = time
        loop.arm(timer, self, at: time)
    }

    private func perform(_ socket: curl_socket_t, _ mask: Int32) {
        guard isOpen else { return }
        act(socket, mask)
        deliverNews()
        schedule()
    }

    /// - Returns: whether a call of libcurl's was long.
    private func noteTime(since begun: Instant) -> Bool {
        guard Loop.now() - begun >= CurlMulti.longCall else { return false }
        wasBusy = true
        return true
    }

    private func suspend(userOf socket: Int32) {
        let seat = sockets.seat(of: socket)
        if users.indices.contains(seat), let user = users[seat] { suspend(user) }
    }

    private func suspend(_ user: any CurlUser) {
        guard user.suspend() else { return }
        suspended.append(user)
        // It may have let go of the one socket that was ready, and nothing else wakes it.
        schedule()
    }

    private func act(_ socket: curl_socket_t, _ mask: Int32) {
        var running: Int32 = 0
        if socket != CURL_SOCKET_BAD { sockets.told(socket) }
        isActing = true
        _ = curl_multi_socket_action(multi, socket, mask, &running)
        isActing = false
        if socket != CURL_SOCKET_BAD { sockets.seen(socket) }
        if !stranded.isEmpty { goOn() }
    }

    /// libcurl (7.88) gives an address up, and looks at the next one when it is called for the same
    /// exchange again; it does not ask for that. What pauses and goes on is looked at again.
    private func goOn() {
        let seats = stranded
        stranded = []
        for seat in seats {
            guard let user = users[seat], !user.isConnected else { continue }
            _ = curl_easy_pause(user.easy, CURLPAUSE_SEND)
            _ = curl_easy_pause(user.easy, CURLPAUSE_CONT)
        }
    }

    /// Tells those that are done: at the end of a turn of the loop, or before a timer that is due.
    func finish() {
        var result = CURLE_OK
        var seat = 0
        while isOpen, shim_curl_multi_next_done(multi, &seat, &result) {
            users[seat]?.finished(result)
        }
    }

    /// Whether the user may deliver a body now. If not, the next turn calls `user.deliver()` again.
    func mayTell(body user: any CurlUser) -> Bool {
        if told < Loop.bytesPerTurn { return true }
        postponed.append(user)
        return false
    }

    private func deliverNews() {
        while isOpen, !news.isEmpty {
            let batch = news
            news = []
            for user in batch { user.deliver() }
        }
    }

    /// Behind all that was ready in a turn of the loop. What is done is told here, not behind each
    /// call of libcurl's, as any of them sends what is new: so what callbacks begin goes out behind
    /// one another, and wakes a server once. And by libcurl's timer each call that it wants at once
    /// would cost a turn of the loop and three system calls.
    func turn() {
        isInTurn = true
        let start = Loop.now()
        let first = rounds
        var mayGoOn = true
        while true {
            if mayGoOn { rounds += 1 }
            let resumed = mayGoOn && !suspended.isEmpty ? suspended.removeFirst() : nil
            resumed?.resume()
            deliverNews()
            decoding.serve()
            finish()
            guard isOpen, isDue, mayGoOn else { break }
            isDue = false
            let begun = Loop.now()
            act(CURL_SOCKET_BAD, 0)
            if noteTime(since: begun), let resumed { suspend(resumed) }
            mayGoOn =
                rounds < first + CurlMulti.roundsPerTurn && told < Loop.bytesPerTurn
                && Loop.now() - start < CurlMulti.turnTime
        }
        if isOpen, tls.pointee.has_suspects { judge() }
        isInTurn = false
        told = 0
        if !postponed.isEmpty {
            news += postponed
            postponed = []
        }
        let hasMoreToDecode = decoding.endTurn()
        tls.pointee.number &+= 1
        sockets.settle()
        let isBusy = sockets.hasReady || !suspended.isEmpty || hasMoreToDecode
        if isOpen, isBusy || isDue || !news.isEmpty { schedule() }
    }

    /// Decides about TLS connections that have received many bytes. Only here: libcurl keeps what
    /// comes for a user that is paused, and says nothing of it.
    private func judge() {
        tls.pointee.has_suspects = false
        for user in users { user?.creditTLS() }
        for user in users {
            if let lowest = shim_tls_lowest(user?.tlsGuard) { shim_tls_judge(lowest) }
        }
        for seat in users.indices {
            // A user that is notified may remove itself or others, or end everything.
            guard isOpen else { return }
            guard let user = users[seat], let lowest = shim_tls_lowest(user.tlsGuard),
                lowest.pointee.is_flood
            else { continue }
            user.flooded()
        }
    }

    private func schedule() {
        if !isInTurn { loop.scheduleMultiplexer() }
    }

    // MARK: What libcurl calls

    private static let socketChanged: shim_curl_socket_fn = { easy, socket, what, user, known in
        guard let user else { return 0 }
        let me = Unmanaged<CurlMulti>.fromOpaque(user).takeUnretainedValue()
        var events: UInt32 = 0
        if what == CURL_POLL_IN || what == CURL_POLL_INOUT { events |= PollEvents.readable }
        if what == CURL_POLL_OUT || what == CURL_POLL_INOUT {
            events |= PollEvents.writable
        }
        if events == 0, me.isActing, me.sockets.isConnecting(socket) {
            let seat = shim_curl_number(easy)
            if seat >= 0, seat < me.users.count { me.stranded.append(seat) }
        }
        if events != 0 {
            if known == nil { shim_curl_keep_lookup_from_children(socket) }
            me.sockets.belongs(socket, to: shim_curl_number(easy))
            me.sockets.watch(socket, events, isNew: known == nil)
        } else if me.sockets.letGo(of: socket), me.isOpen {
            me.schedule()
        }
        // Any pointer but NULL marks the socket as known.
        _ = curl_multi_assign(me.multi, socket, events == 0 ? nil : user)
        return 0
    }

    private static let timerChanged: shim_curl_timer_fn = { _, milliseconds, user in
        guard let user else { return 0 }
        let me = Unmanaged<CurlMulti>.fromOpaque(user).takeUnretainedValue()
        me.isDue = milliseconds == 0
        me.dueAt = milliseconds > 0 ? Loop.now() + .milliseconds(Int64(milliseconds)) : nil
        if me.isDue, me.isOpen { me.schedule() }
        // One that is too early stays: most times move on before they come, with each request.
        if let dueAt = me.dueAt, me.armedAt.map({ dueAt < $0 }) ?? true { me.arm(dueAt) }
        return 0
    }
}
