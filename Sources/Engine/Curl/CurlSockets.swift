import CShims
import Glibc

/// libcurl's sockets in the loop's epoll.
///
/// libcurl lets go of a connection's socket when an exchange is over, and takes it up again for the
/// next one, which comes often within the same turn of the loop. What it lets go of stays in epoll
/// until the turn is over: two system calls less for each exchange.
///
/// The number of a socket that was closed may be another's next. So only those stay whose end is
/// told here: libcurl (7.88) tells it of connections that are made, and closes those that are not
/// without a word.
///
/// Such a socket leaves epoll by itself, unless a forked child has it, too: the kernel would go on
/// reporting it, and nobody could take it out, as its number is gone. So a socket that connects is
/// reported once (`PollEvents.once`), and once more when libcurl has seen that and still waits.
final class CurlSockets {
    private let epoll: Int32
    /// By descriptor.
    @exclusivity(unchecked) private var entries: [Entry] = []
    /// Those libcurl has let go of in this turn.
    @exclusivity(unchecked) private var released: [Int32] = []
    /// Kept connections of HTTP/1.1, by their own ports.
    @exclusivity(unchecked) private var alternating: [Int32: [Int32]] = [:]
    /// Sockets that epoll says are ready and libcurl has not looked at, from `readyHead` on.
    @exclusivity(unchecked) private var ready: [Int32] = []
    @exclusivity(unchecked) private var readyHead = 0
    private static let mostHandled = 1024
    @exclusivity(unchecked) private(set) var progress = ReadyProgress()

    /// There is one for each descriptor below the largest: small.
    private struct Entry {
        /// Its end will be told.
        var isKept = false
        /// libcurl has let go of it; epoll has it still.
        var isLetGo = false
        /// In `released`.
        var isReleased = false
        /// libcurl waits for its connection; epoll tells of it once.
        var isConnecting = false
        /// epoll has told of it since.
        var isTold = false
        /// Its own port, if it is in `alternating`; else 0.
        var port: UInt16 = 0
        /// What epoll tells of it; 0 when that is not known.
        var events: UInt16 = 0
        /// What epoll says of it that libcurl has not looked at; 0 for nothing.
        var readyEvents: UInt16 = 0
        /// The seat of the user that it serves.
        var seat: Int32 = 0
    }

    init(epoll: Int32) { self.epoll = epoll }

    /// The connection of a socket was made by an exchange, and outlives it.
    /// - Parameter isAlternating: the server sends only when it was asked, as in HTTP/1.1.
    func keep(_ socket: Int32, isAlternating: Bool = false) {
        makeRoom(for: socket)
        entries[Int(socket)].isKept = true
        entries[Int(socket)].events = 0
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

    /// For libcurl to call before a request goes out. What has come on a kept connection of
    /// HTTP/1.1 would be taken for the answer to the next request (RFC 9112 §9.2), and libcurl
    /// (7.88) does not look. Returns whether the connection was shut down.
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

    /// The loop's epoll says that a socket is ready.
    func isReady(_ socket: Int32, _ events: UInt32) {
        makeRoom(for: socket)
        if entries[Int(socket)].readyEvents == 0 {
            ready.append(socket)
            progress.queued += 1
        }
        entries[Int(socket)].readyEvents |= UInt16(truncatingIfNeeded: events)
    }

    /// The one that has been ready longest, and for what; nil for none.
    func nextReady() -> (Int32, UInt32)? {
        while hasReady {
            let socket = ready[readyHead]
            readyHead += 1
            progress.handled += 1
            // Under a flood it is never empty.
            if !hasReady || readyHead == CurlSockets.mostHandled {
                ready.removeFirst(readyHead)
                readyHead = 0
            }
            let events = UInt32(entries[Int(socket)].readyEvents)
            entries[Int(socket)].readyEvents = 0
            // 0 when libcurl has let go of it since.
            if events != 0 { return (socket, events) }
        }
        return nil
    }

    func belongs(_ socket: Int32, to seat: Int) {
        makeRoom(for: socket)
        entries[Int(socket)].seat = Int32(truncatingIfNeeded: seat)
    }

    func seat(of socket: Int32) -> Int { Int(entries[Int(socket)].seat) }

    // MARK: What libcurl wants to know

    /// libcurl waits for a socket's connection.
    func isConnecting(_ socket: Int32) -> Bool {
        socket < entries.count && entries[Int(socket)].isConnecting
    }

    /// libcurl wants to know nothing more of a socket.
    /// - Returns: whether it stays until `settle`.
    func letGo(of socket: Int32) -> Bool {
        makeRoom(for: socket)
        entries[Int(socket)].readyEvents = 0
        guard isKept(socket) else {
            entries[Int(socket)].isConnecting = false
            _ = shim_epoll_remove(epoll, socket)
            return false
        }
        let index = Int(socket)
        entries[index].isLetGo = true
        if !entries[index].isReleased {
            entries[index].isReleased = true
            released.append(socket)
        }
        return true
    }

    /// libcurl wants to know of `events`.
    /// - Parameter isNew: it did not know the socket.
    func watch(_ socket: Int32, _ events: UInt32, isNew: Bool) {
        var isWatched = !isNew
        if isKept(socket) {
            let entry = entries[Int(socket)]
            entries[Int(socket)].isLetGo = false
            entries[Int(socket)].events = UInt16(truncatingIfNeeded: events)
            if entry.isLetGo, entry.events == events { return }
            isWatched = isWatched || entry.isLetGo
        } else {
            // One that connects is waited for to be writable, and for nothing else.
            makeRoom(for: socket)
            entries[Int(socket)].isConnecting = isNew && events == PollEvents.writable
            if entries[Int(socket)].isConnecting { return watchOnce(socket, isWatched: false) }
        }
        put(socket, events, isWatched: isWatched)
    }

    /// epoll tells of a socket, and libcurl is told next.
    func told(_ socket: Int32) {
        if socket < entries.count { entries[Int(socket)].isTold = true }
    }

    /// libcurl has been told.
    func seen(_ socket: Int32) {
        guard socket < entries.count, entries[Int(socket)].isConnecting,
            entries[Int(socket)].isTold
        else { return }
        watchOnce(socket, isWatched: true)
    }

    private func watchOnce(_ socket: Int32, isWatched: Bool) {
        entries[Int(socket)].isTold = false
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

    /// Takes out of epoll what was not taken up again. Before the loop waits.
    func settle() {
        guard !released.isEmpty else { return }
        for socket in released {
            entries[Int(socket)].isReleased = false
            leave(socket)
        }
        released.removeAll(keepingCapacity: true)
    }

    private func leave(_ socket: Int32) {
        guard entries[Int(socket)].isLetGo else { return }
        entries[Int(socket)].isLetGo = false
        _ = shim_epoll_remove(epoll, socket)
    }

    /// For libcurl to call. Out of epoll first: a forked child may have the socket, too, and then
    /// the kernel would go on with it.
    static let closed: shim_curl_close_socket_fn = { user, socket in
        if let user {
            let me = Unmanaged<CurlSockets>.fromOpaque(user).takeUnretainedValue()
            if socket < me.entries.count {
                me.leave(socket)
                me.forgetPort(of: socket)
                me.entries[Int(socket)].isKept = false
                me.entries[Int(socket)].isConnecting = false
                me.entries[Int(socket)].readyEvents = 0
            }
        }
        return Glibc.close(socket)
    }
}
