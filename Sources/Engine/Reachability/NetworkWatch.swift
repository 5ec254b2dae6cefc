import Synchronization
import Wire

/// A loop's network monitor, once there is one. Any thread.
final class NetworkWatch: LoopLocal {
    private enum State {
        /// No monitor was requested yet.
        case none
        case monitor(NetworkMonitor)
        /// The system does not let programs see its network.
        case unavailable
    }

    private let state = Mutex(State.none)

    /// The loop's instance.
    static func of(_ loop: Loop) -> NetworkWatch {
        loop.local(NetworkWatch.self) { NetworkWatch() }
    }

    func loopClosed() {
        let monitor = monitor
        state.withLock { $0 = .none }
        monitor?.loopClosed()
    }

    /// The loop's monitor, if it has one.
    var monitor: NetworkMonitor? {
        state.withLock { state in
            if case .monitor(let monitor) = state { monitor } else { nil }
        }
    }

    /// The same, but made if there is none; nil if the system does not let programs see its
    /// network.
    func start(on loop: Loop) -> NetworkMonitor? {
        let (monitor, failure) = state.withLock { state -> (NetworkMonitor?, RealtimeError?) in
            switch state {
            case .monitor(let monitor): return (monitor, nil)
            case .unavailable: return (nil, nil)
            case .none:
                do throws(RealtimeError) {
                    let monitor = try NetworkMonitor(loop)
                    state = .monitor(monitor)
                    return (monitor, nil)
                } catch {
                    state = .unavailable
                    return (nil, error)
                }
            }
        }
        if let failure {
            Log.write(.warning, "reachability \"auto\" counts as \"always\": \(failure.message)")
        }
        if let monitor { loop.perform { monitor.attach() } }
        return monitor
    }
}
