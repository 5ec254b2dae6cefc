import Glibc
import Session

/// A lock with a condition variable, which the standard library's `Mutex` does not have.
final class Monitor: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(changed, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    func lock() { pthread_mutex_lock(mutex) }
    func unlock() { pthread_mutex_unlock(mutex) }

    func locked<Result>(_ body: () -> Result) -> Result {
        lock()
        defer { unlock() }
        return body()
    }

    /// Releases the lock until `wakeAll` is called. May also return for no reason.
    func wait() { pthread_cond_wait(changed, mutex) }

    /// Like `wait`, but at most until `deadline`.
    /// - Returns: false if that has come.
    func wait(until deadline: Instant) -> Bool {
        let (seconds, rest) = deadline.nanoseconds.quotientAndRemainder(
            dividingBy: 1_000_000_000)
        var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(rest))
        return pthread_cond_timedwait(changed, mutex, &time) != ETIMEDOUT
    }

    func wakeAll() { pthread_cond_broadcast(changed) }
}
