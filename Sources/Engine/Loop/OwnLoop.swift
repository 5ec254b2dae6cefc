import Synchronization
package import Wire

/// The loop of objects that are given none: one for all of them, on a thread of its own, from the
/// first to the last.
package enum OwnLoop {
    private struct Users {
        let loop: Loop
        var count: Int
    }

    private static let users = Mutex<Users?>(nil)

    /// For one object more, which calls `leave` when it is freed.
    package static func join() throws(RealtimeError) -> Loop {
        try users.withLock { users throws(RealtimeError) in
            if let current = users, !current.loop.isForked {
                users?.count += 1
                return current.loop
            }
            let made = try Loop()
            do throws(RealtimeError) {
                try made.start()
            } catch {
                made.close()
                throw error
            }
            users = Users(loop: made, count: 1)
            return made
        }
    }

    /// An object of this loop, if it is the library's own, was freed. After the last one the loop
    /// ends with its thread. Nothing waits for that: this thread may hold another loop, for which a
    /// callback of this one waits. A process may end meanwhile (see `shim_curl_global_init`).
    package static func leave(_ loop: Loop) {
        let isLast = users.withLock { users in
            guard let current = users, current.loop === loop else { return false }
            users?.count -= 1
            if current.count == 1 { users = nil }
            return current.count == 1
        }
        guard isLast else { return }
        // After a whole turn for what was asked of it before, such as a close frame.
        try? loop.post { try? loop.post { loop.close() } }
    }
}
