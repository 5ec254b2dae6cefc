import CShims
import Session
import Synchronization
import Wire

/// An easy handle's owner in a multi handle.
protocol CurlUser: AnyObject {
    var easy: UnsafeMutableRawPointer { get }
    /// Its index among the multi handle's users; nil for none.
    var seat: Int? { get set }
    /// Whether its connection is established.
    var isConnected: Bool { get }
    /// The TLS connection that it uses; nil for none.
    var tlsGuard: UnsafeMutablePointer<shim_tls_guard>? { get }
    /// Credits its TLS connection with the bytes that it has carried for this user.
    func creditTLS()
    /// The TLS connection receives a flood of bytes without content: the user must leave it.
    func flooded()
    /// libcurl has finished with it. Called in the multi handle's turn.
    func finished(_ result: CURLcode)
    /// Delivers what libcurl passed on meanwhile. Called while no call of libcurl is running.
    func deliver()
    /// Stops libcurl from reading for this user until `resume`.
    /// - Returns: whether this call paused it.
    func suspend() -> Bool
    func resume()
    /// The multi handle has ended.
    func multiClosed()
}

/// A user that begins in a turn of its own (`CurlMulti.willBegin`).
protocol CurlBeginner: CurlUser {
    /// Adds itself to the multi handle, unless it has ended.
    func begin()
}

/// libcurl's multi handle on a loop: its sockets are in the loop's epoll, its one timer is in the
/// loop's heap (`curl_multi_socket_action`).
///
/// libcurl must not be called from its own callbacks, but users' callbacks may call anything. So
/// libcurl's callbacks only record what arrived (`needsDelivery`), and it is delivered when libcurl
/// has returned. Completed exchanges are reported in the multi handle's turn.
///
/// Unchecked because its fields belong to the loop's owner (see `Loop.enter`).
final class CurlMulti: TimerTarget, LoopLocal, LoopMultiplexer, @unchecked Sendable {
    private let multi: UnsafeMutableRawPointer
    /// The loop retains this object; users of this object retain both.
    unowned(unsafe) let loop: Loop
    private let timer = LoopTimer()
    @exclusivity(unchecked) private var armedAt: Instant?
    /// When libcurl wants to be called.
    @exclusivity(unchecked) private var dueAt: Instant?
    let sockets: CurlSockets
    /// Makes connections for users.
    let dials: CurlDials
    /// State that its TLS connections share.
    let tls: UnsafeMutablePointer<shim_tls_turn>
    /// Users by their seats, which libcurl stores for us.
    @exclusivity(unchecked) private var users: [(any CurlUser)?] = []
    @exclusivity(unchecked) private var freeSeats: [Int] = []
    @exclusivity(unchecked) private var undelivered: [any CurlUser] = []
    /// Users with more of a body than this turn may deliver.
    @exclusivity(unchecked) private var postponed: [any CurlUser] = []
    /// Users that may keep libcurl busy for long. They continue one at a time, because libcurl
    /// would otherwise read for all of them in any call.
    @exclusivity(unchecked) private var suspended: [any CurlUser] = []
    /// Users that have a socket and are to begin: one in each call, because servers may answer at
    /// once and without end, and libcurl would read for all of them in the same call.
    @exclusivity(unchecked) private var beginning: [any CurlBeginner] = []
    /// True if a call of libcurl took long.
    @exclusivity(unchecked) private var wasBusy = false
    let decoding = DecodingTurns()
    /// Storage for received bytes, lent to one user after the other.
    @exclusivity(unchecked) private var spare = ByteBuffer()
    private static let spareBytes = 512 << 10
    @exclusivity(unchecked) private var isInTurn = false
    /// True inside a call of libcurl.
    @exclusivity(unchecked) private var isActing = false
    /// True if libcurl wants to be called again at once.
    @exclusivity(unchecked) private var isDue = false
    /// How many rounds `turn` has made so far.
    @exclusivity(unchecked) private var rounds: UInt64 = 0
    /// The most rounds in one turn of the loop, before other objects get theirs.
    private static let roundsPerTurn: UInt64 = 16
    /// The most time for these rounds. libcurl reads up to a hundred times from a connection in a
    /// round, and a server can fill that with bytes without content, such as chunk extensions.
    private static let turnTime = Duration.milliseconds(5)
    /// A call of libcurl that takes this long has read bytes without content.
    private static let longCall = Duration.milliseconds(3)
    /// Body bytes that owners received since the last turn ended. Limited, because an event can
    /// consist of just a few bytes.
    @exclusivity(unchecked) private var deliveredBytes = 0
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
        shim_curl_multi_keep_connections(multi)
        self.multi = multi
        self.loop = loop
        sockets = CurlSockets(epoll: loop.descriptor)
        dials = CurlDials(on: loop)
        tls = .allocate(capacity: 1)
        tls.initialize(to: shim_tls_turn())
        beginTurn(ready: 1)
        let me = Unmanaged.passUnretained(self).toOpaque()
        _ = shim_curl_multi_set_socket(multi, CurlMulti.socketChanged, me)
        _ = shim_curl_multi_set_timer(multi, CurlMulti.timerChanged, me)
        loop.attach(self)
    }

    /// The loop's instance, made for the first exchange or connection.
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

    /// Calls `user.deliver()` once, when libcurl has returned.
    func needsDelivery(_ user: any CurlUser) {
        undelivered.append(user)
        // What libcurl's callbacks record is delivered when libcurl returns. A user's own call
        // waits for the loop's turn.
        if !isActing { schedule() }
    }

    /// Lends storage to a buffer that has none.
    func lend(_ buffer: inout ByteBuffer) {
        if buffer.capacity == 0 { swap(&buffer, &spare) }
    }

    /// Counts delivered bytes of a body.
    func countDelivered(_ count: Int) { deliveredBytes += count }

    /// Takes back the storage of an empty buffer.
    func takeBack(_ buffer: inout ByteBuffer) {
        guard buffer.isEmpty, buffer.capacity > 0 else { return }
        if spare.capacity < buffer.capacity { swap(&buffer, &spare) }
        buffer.removeAll(keeping: 0)
        spare.removeAll(keeping: CurlMulti.spareBytes)
    }

    /// Whether this is a forked child's copy. The connections belong to the parent, and closing TLS
    /// would write to them.
    var isForked: Bool { forkGeneration != shim_fork_generation() }

    /// Ends everything; users that are still connecting are notified.
    func close() {
        guard isOpen, !isForked else { return }
        // No new transfer can start from here on. A user may remove itself, or others, while it is
        // notified.
        for seat in users.indices { users[seat]?.multiClosed() }
        for user in beginning { user.multiClosed() }
        users = []
        beginning = []
        undelivered = []
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
        progress.roundsLeft = UInt64(max(suspended.count, beginning.count, isDue ? 1 : 0))
        return progress
    }

    func beginTurn(ready: Int) {
        shim_tls_begin_turn(tls, UInt32(clamping: ready + sockets.waiting))
    }

    /// Passes ready sockets to libcurl, for a limited time: with each of them a server can keep it
    /// busy for milliseconds. The rest follow in the next turn, before those that are ready then.
    func handleReady() {
        guard sockets.hasReady else { return }
        suspendReady()
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
            deliverRecorded()
            schedule()
            begun = Loop.now()
            // This turn may call libcurl once more, which would read for the rest, too.
            if begun - start >= CurlMulti.turnTime { return suspendReady() }
        }
    }

    /// Suspends the users whose sockets are ready, if a call of libcurl took long.
    private func suspendReady() {
        guard wasBusy else { return }
        wasBusy = false
        for socket in sockets.allReady { suspend(userOf: socket) }
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

    /// Calls `user.begin()` in this turn of the loop, or in a later one if much is to be done.
    func willBegin(_ user: any CurlBeginner) {
        beginning.append(user)
        schedule()
    }

    private func perform(_ socket: curl_socket_t, _ mask: Int32) {
        guard isOpen else { return }
        act(socket, mask)
        deliverRecorded()
        schedule()
    }

    /// - Returns: whether libcurl's call took long.
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
        // If its socket was the only ready one, nothing else would schedule a turn.
        schedule()
    }

    private func act(_ socket: curl_socket_t, _ mask: Int32) {
        var running: Int32 = 0
        if socket != CURL_SOCKET_BAD { sockets.reported(socket) }
        isActing = true
        // libcurl does not say whether it has read all that there was.
        loop.mayBeReady = true
        _ = curl_multi_socket_action(multi, socket, mask, &running)
        isActing = false
        if socket != CURL_SOCKET_BAD { sockets.handled(socket) }
    }

    /// Reports completed users: at the end of the loop's turn, or before a timer that is due.
    func finish() {
        var result = CURLE_OK
        var seat = 0
        while isOpen, shim_curl_multi_next_done(multi, &seat, &result) {
            users[seat]?.finished(result)
        }
    }

    /// Whether the user may deliver a body now. If not, the next turn calls `user.deliver()` again.
    func mayDeliver(body user: any CurlUser) -> Bool {
        if deliveredBytes < Loop.bytesPerTurn { return true }
        postponed.append(user)
        return false
    }

    private func deliverRecorded() {
        while isOpen, !undelivered.isEmpty {
            let batch = undelivered
            undelivered = []
            for user in batch { user.deliver() }
        }
    }

    /// Runs after everything that was ready in a turn of the loop. Completed exchanges are reported
    /// here rather than after each call of libcurl, because each call sends new requests. So
    /// requests that callbacks start go out together and wake the server once. If libcurl wants to
    /// be called at once, a loop here is cheaper than its timer, which costs a turn and three
    /// system calls.
    func turn() {
        isInTurn = true
        let start = Loop.now()
        let first = rounds
        var mayContinue = true
        while true {
            if mayContinue { rounds += 1 }
            let resumed = mayContinue && !suspended.isEmpty ? suspended.removeFirst() : nil
            resumed?.resume()
            let begun = mayContinue && !beginning.isEmpty ? beginning.removeFirst() : nil
            begun?.begin()
            deliverRecorded()
            decoding.serve()
            finish()
            guard isOpen, isDue || !beginning.isEmpty, mayContinue else { break }
            isDue = false
            let actedAt = Loop.now()
            act(CURL_SOCKET_BAD, 0)
            if noteTime(since: actedAt) {
                if let resumed { suspend(resumed) }
                if let begun { suspend(begun) }
            }
            mayContinue =
                rounds < first + CurlMulti.roundsPerTurn && deliveredBytes < Loop.bytesPerTurn
                && Loop.now() - start < CurlMulti.turnTime
        }
        if isOpen, tls.pointee.has_suspects { judge() }
        isInTurn = false
        deliveredBytes = 0
        if !postponed.isEmpty {
            undelivered += postponed
            postponed = []
        }
        let hasMoreToDecode = decoding.endTurn()
        tls.pointee.number &+= 1
        sockets.settle()
        let isBusy =
            sockets.hasReady || !suspended.isEmpty || !beginning.isEmpty || hasMoreToDecode
        if isOpen, isBusy || isDue || !undelivered.isEmpty { schedule() }
    }

    /// Checks TLS connections that received many bytes. Only here, because libcurl silently keeps
    /// bytes for a user that is paused.
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

    // MARK: libcurl's callbacks

    private static let socketChanged: shim_curl_socket_fn = { easy, socket, what, user, known in
        guard let user else { return 0 }
        let me = Unmanaged<CurlMulti>.fromOpaque(user).takeUnretainedValue()
        var events: UInt32 = 0
        if what == CURL_POLL_IN || what == CURL_POLL_INOUT { events |= PollEvents.readable }
        if what == CURL_POLL_OUT || what == CURL_POLL_INOUT {
            events |= PollEvents.writable
        }
        if events != 0 {
            if known == nil { shim_curl_keep_lookup_from_children(socket) }
            me.sockets.belongs(socket, to: shim_curl_number(easy))
            me.sockets.watch(socket, events, isNew: known == nil)
        } else if me.sockets.release(socket), me.isOpen {
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
        // Keeps an earlier timer: most deadlines move on, with each request, before they are
        // reached.
        if let dueAt = me.dueAt, me.armedAt.map({ dueAt < $0 }) ?? true { me.arm(dueAt) }
        return 0
    }
}
