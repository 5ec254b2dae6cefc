import CShims
import Glibc

/// libcurl's sockets in the loop's epoll.
///
/// libcurl releases a connection's socket after an exchange and takes it up again for the next one,
/// often within the same turn of the loop. A released socket stays in epoll until the turn ends,
/// which saves two system calls for each exchange.
///
/// The number of a closed socket can be reused at once. So this is done only for sockets whose end
/// is reported to us: libcurl (7.88) reports the end of established connections, but closes others
/// silently.
///
/// Such a socket leaves epoll when it is closed, unless a forked child has it, too. Then the kernel
/// would keep reporting it, and we could not remove it any more. So a socket that is connecting is
/// reported once (`PollEvents.once`), and armed again if libcurl still waits afterwards.
final class CurlSockets {
    private let epoll: Int32
    /// Indexed by descriptor.
    @exclusivity(unchecked) private var entries: [Entry] = []
    /// Sockets that libcurl has released in this turn.
    @exclusivity(unchecked) private var released: [Int32] = []
    /// How many connections wait for a next exchange.
    @exclusivity(unchecked) private var idle = 0
    private static let mostIdle = 256
    /// Kept connections of HTTP/1.1, by their local ports.
    @exclusivity(unchecked) private var alternating: [Int32: [Int32]] = [:]
    /// Sockets that epoll reported and libcurl has not handled yet, from `readyHead` on.
    @exclusivity(unchecked) private var ready: [Int32] = []
    @exclusivity(unchecked) private var readyHead = 0
    private static let mostHandled = 1024
    @exclusivity(unchecked) private(set) var progress = ReadyProgress()

    /// One for each descriptor up to the largest, so keep it small.
    private struct Entry {
        /// Its end will be reported.
        var isKept = false
        /// libcurl has released it, but it is still in epoll.
        var isReleased = false
        /// In `released`.
        var isListed = false
        /// libcurl waits for its connection; epoll reports it once.
        var isConnecting = false
        /// epoll has reported it since.
        var isReported = false
        /// Its local port, if it is in `alternating`; else 0.
        var port: UInt16 = 0
        /// The events that epoll watches; 0 if unknown.
        var events: UInt16 = 0
        /// The events that epoll reported and libcurl has not handled; 0 for none.
        var readyEvents: UInt16 = 0
        /// The seat of the user that it serves, or served last.
        var seat: Int32 = 0
        /// libcurl watches it for that user.
        var isServing = false

        var isIdle: Bool { isKept && !isServing }
    }

    init(epoll: Int32) { self.epoll = epoll }

    /// Whether as many connections are idle as may be. A program may exchange with any number of
    /// servers, and libcurl (7.88) must not choose what to close: it would keep an entry for each
    /// server forever, and search them all each time.
    var isCrowded: Bool { idle >= CurlSockets.mostIdle }

    private func change(_ socket: Int32, _ body: (inout Entry) -> Void) {
        let wasIdle = entries[Int(socket)].isIdle
        body(&entries[Int(socket)])
        idle += (entries[Int(socket)].isIdle ? 1 : 0) - (wasIdle ? 1 : 0)
    }

    /// Call when an exchange has established a connection that outlives it.
    /// - Parameter isAlternating: the server only sends when it was asked, as in HTTP/1.1.
    func keep(_ socket: Int32, isAlternating: Bool = false) {
        makeRoom(for: socket)
        change(socket) { entry in
            entry.isKept = true
            entry.events = 0
        }
        forgetPort(of: socket)
        guard isAlternating else { return }
        let port = shim_socket_own_port(socket)
        guard port > 0 else { return }
        entries[Int(socket)].port = UInt16(truncatingIfNeeded: port)
        alternating[port, default: []].append(socket)
    }

    private func forgetPort(of socket: Int32) {
        let port = Int32(entries[Int(socket)].port)
        guard port > 0 else { return }
        entries[Int(socket)].port = 0
        alternating[port]?.removeAll { $0 == socket }
        if alternating[port]?.isEmpty ?? false { alternating[port] = nil }
    }

    /// libcurl calls this before it sends a request. Bytes already waiting on a kept HTTP/1.1
    /// connection would be taken for the response (RFC 9112 §9.2), and libcurl (7.88) does not
    /// check. Returns whether the connection was shut down.
    static let cutIfDirty: shim_curl_cut_fn = { user, address, port, ownPort in
        guard let user, let address else { return false }
        let me = Unmanaged<CurlSockets>.fromOpaque(user).takeUnretainedValue()
        guard let sockets = me.alternating[Int32(ownPort)] else { return false }
        return sockets.contains { shim_socket_cut_if_dirty($0, address, port) }
    }

    private func makeRoom(for socket: Int32) {
        let missing = Int(socket) + 1 - entries.count
        if missing > 0 { entries.append(contentsOf: repeatElement(Entry(), count: missing)) }
    }

    private func isKept(_ socket: Int32) -> Bool {
        socket < entries.count && entries[Int(socket)].isKept
    }

    // MARK: Readiness

    var hasReady: Bool { readyHead < ready.count }
    var waiting: Int { ready.count - readyHead }

    var allReady: [Int32] { Array(ready[readyHead...]) }

    /// The loop's epoll reports that a socket is ready.
    func isReady(_ socket: Int32, _ events: UInt32) {
        makeRoom(for: socket)
        if entries[Int(socket)].readyEvents == 0 {
            ready.append(socket)
            progress.queued += 1
        }
        entries[Int(socket)].readyEvents |= UInt16(truncatingIfNeeded: events)
    }

    /// The socket that has been ready longest, with its events; nil for none.
    func nextReady() -> (Int32, UInt32)? {
        while hasReady {
            let socket = ready[readyHead]
            readyHead += 1
            progress.handled += 1
            // During a flood the queue is never empty, so also trim it here.
            if !hasReady || readyHead == CurlSockets.mostHandled {
                ready.removeFirst(readyHead)
                readyHead = 0
            }
            let events = UInt32(entries[Int(socket)].readyEvents)
            entries[Int(socket)].readyEvents = 0
            // 0 if libcurl has released it since.
            if events != 0 { return (socket, events) }
        }
        return nil
    }

    func belongs(_ socket: Int32, to seat: Int) {
        makeRoom(for: socket)
        change(socket) { entry in
            entry.seat = Int32(truncatingIfNeeded: seat)
            entry.isServing = true
        }
    }

    /// The socket that libcurl watches for a user; nil for none. Takes as long as there are
    /// sockets.
    func socket(serving seat: Int) -> Int32? {
        entries.firstIndex { $0.isServing && !$0.isConnecting && $0.seat == seat }.map { Int32($0) }
    }

    func seat(of socket: Int32) -> Int { Int(entries[Int(socket)].seat) }

    // MARK: What libcurl watches

    /// libcurl no longer watches a socket.
    /// - Returns: whether it stays in epoll until `settle`.
    func release(_ socket: Int32) -> Bool {
        makeRoom(for: socket)
        change(socket) { entry in
            entry.readyEvents = 0
            entry.isServing = false
        }
        guard isKept(socket) else {
            entries[Int(socket)].isConnecting = false
            _ = shim_epoll_remove(epoll, socket)
            return false
        }
        let index = Int(socket)
        entries[index].isReleased = true
        if !entries[index].isListed {
            entries[index].isListed = true
            released.append(socket)
        }
        return true
    }

    /// libcurl watches a socket for `events`.
    /// - Parameter isNew: whether libcurl did not watch it before.
    func watch(_ socket: Int32, _ events: UInt32, isNew: Bool) {
        var isWatched = !isNew
        if isKept(socket) {
            let entry = entries[Int(socket)]
            entries[Int(socket)].isReleased = false
            entries[Int(socket)].events = UInt16(truncatingIfNeeded: events)
            if entry.isReleased, entry.events == events { return }
            isWatched = isWatched || entry.isReleased
        } else {
            // A socket that is connecting is only watched until it is writable.
            makeRoom(for: socket)
            entries[Int(socket)].isConnecting = isNew && events == PollEvents.writable
            if entries[Int(socket)].isConnecting { return watchOnce(socket, isWatched: false) }
        }
        put(socket, events, isWatched: isWatched)
    }

    /// epoll reported a socket, which libcurl handles next.
    func reported(_ socket: Int32) {
        if socket < entries.count { entries[Int(socket)].isReported = true }
    }

    /// libcurl has handled it.
    func handled(_ socket: Int32) {
        guard socket < entries.count, entries[Int(socket)].isConnecting,
            entries[Int(socket)].isReported
        else { return }
        watchOnce(socket, isWatched: true)
    }

    private func watchOnce(_ socket: Int32, isWatched: Bool) {
        entries[Int(socket)].isReported = false
        put(socket, PollEvents.writable | PollEvents.once, isWatched: isWatched)
    }

    private func put(_ socket: Int32, _ events: UInt32, isWatched: Bool) {
        let token = Loop.multiplexerToken(socket)
        if isWatched {
            _ = shim_epoll_modify(epoll, socket, events, token)
        } else {
            _ = shim_epoll_add(epoll, socket, events, token)
        }
    }

    /// Removes released sockets from epoll. Call before the loop waits.
    func settle() {
        guard !released.isEmpty else { return }
        for socket in released {
            entries[Int(socket)].isListed = false
            leave(socket)
        }
        released.removeAll(keepingCapacity: true)
    }

    private func leave(_ socket: Int32) {
        guard entries[Int(socket)].isReleased else { return }
        entries[Int(socket)].isReleased = false
        _ = shim_epoll_remove(epoll, socket)
    }

    /// libcurl calls this to close a socket. It leaves epoll first, because a forked child may have
    /// the socket, too, and then the kernel would keep reporting it.
    static let closed: shim_curl_close_socket_fn = { user, socket in
        if let user {
            let me = Unmanaged<CurlSockets>.fromOpaque(user).takeUnretainedValue()
            if socket < me.entries.count {
                me.leave(socket)
                me.forgetPort(of: socket)
                me.change(socket) { entry in
                    entry.isKept = false
                    entry.isConnecting = false
                    entry.isServing = false
                    entry.readyEvents = 0
                }
            }
        }
        return Glibc.close(socket)
    }
}
