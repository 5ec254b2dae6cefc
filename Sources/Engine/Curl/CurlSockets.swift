import CShims
import Glibc

/// libcurl's sockets in the loop's epoll.
///
/// libcurl lets go of a connection's socket when an exchange is over, and takes it up again for the
/// next one, which comes often within the same turn of the loop. What it lets go of stays in epoll
/// until the turn is over: two system calls less for each exchange. Only sockets whose end is told
/// here may stay, since the number of one that was closed may be another's next.
final class CurlSockets {
    private let epoll: Int32
    /// By descriptor.
    @exclusivity(unchecked) private var entries: [Entry] = []
    /// Let go of, and in epoll still.
    @exclusivity(unchecked) private var released: [Int32] = []

    private struct Entry {
        /// What epoll has.
        var watched: UInt32 = 0
        /// What libcurl wants.
        var wanted: UInt32 = 0
        /// Its opening was told here, and its end will be.
        var isTold = false
        /// In `released`.
        var isReleased = false
    }

    init(epoll: Int32) { self.epoll = epoll }

    /// What libcurl wants to know of a socket: `events` 0 for nothing.
    /// - Returns: whether `settle` is due.
    func watch(_ socket: Int32, _ events: UInt32) -> Bool {
        makeRoom(for: socket)
        let index = Int(socket)
        entries[index].wanted = events
        guard events == 0, entries[index].isTold else {
            update(socket)
            return false
        }
        if !entries[index].isReleased {
            entries[index].isReleased = true
            released.append(socket)
        }
        return true
    }

    /// Takes out of epoll what libcurl has let go of. Before the loop waits.
    func settle() {
        guard !released.isEmpty else { return }
        for socket in released {
            entries[Int(socket)].isReleased = false
            update(socket)
        }
        released.removeAll(keepingCapacity: true)
    }

    private func update(_ socket: Int32) {
        let entry = entries[Int(socket)]
        guard entry.watched != entry.wanted else { return }
        entries[Int(socket)].watched = entry.wanted
        let token = Loop.curlToken(socket)
        if entry.wanted == 0 {
            _ = rt_epoll_remove(epoll, socket)
        } else if entry.watched == 0 {
            _ = rt_epoll_add(epoll, socket, entry.wanted, token)
        } else {
            _ = rt_epoll_modify(epoll, socket, entry.wanted, token)
        }
    }

    private func makeRoom(for socket: Int32) {
        let missing = Int(socket) + 1 - entries.count
        if missing > 0 { entries.append(contentsOf: repeatElement(Entry(), count: missing)) }
    }

    // MARK: What libcurl calls

    static let opened: @convention(c) (UnsafeMutableRawPointer?, curl_socket_t) -> Void = {
        user, socket in
        guard let user else { return }
        let me = Unmanaged<CurlSockets>.fromOpaque(user).takeUnretainedValue()
        me.makeRoom(for: socket)
        let isReleased = me.entries[Int(socket)].isReleased
        me.entries[Int(socket)] = Entry(isTold: true, isReleased: isReleased)
    }

    /// Out of epoll first: a forked child may have the socket, too, and then the kernel would go on
    /// with it.
    static let closed: rt_curl_close_socket_fn = { user, socket in
        if let user {
            let me = Unmanaged<CurlSockets>.fromOpaque(user).takeUnretainedValue()
            if socket < me.entries.count {
                me.entries[Int(socket)].wanted = 0
                me.update(socket)
                me.entries[Int(socket)].isTold = false
            }
        }
        return Glibc.close(socket)
    }
}
