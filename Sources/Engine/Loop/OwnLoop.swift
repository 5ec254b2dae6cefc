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
    /// ends: a thread inside of libcurl or OpenSSL would not survive the end of the program, so
    /// this waits for it, except on the loop's own thread.
    package static func leave(_ loop: Loop) {
        let isLast = users.withLock { users in
            guard let current = users, current.loop === loop else { return false }
            users?.count -= 1
            if current.count == 1 { users = nil }
            return current.count == 1
        }
        guard isLast else { return }
        if loop.isOwner {
            try? loop.post { loop.close() }
        } else {
            try? loop.stopAndWait()
            // What was asked of it meanwhile, such as a close frame.
            try? loop.dispatch(timeout: 0)
            loop.close()
        }
    }
}
