import Synchronization
import Wire

/// What a loop knows of the network. Any thread.
final class NetworkWatch: LoopLocal {
    private enum State {
        /// Nobody asked.
        case none
        case monitor(NetworkMonitor)
        /// The system does not show it.
        case unavailable
    }

    private let state = Mutex(State.none)

    /// The loop's.
    static func of(_ loop: Loop) -> NetworkWatch {
        loop.local(NetworkWatch.self) { NetworkWatch() }
    }

    func loopClosed() { state.withLock { $0 = .none } }

    /// The one that watches for this loop, if any does.
    var monitor: NetworkMonitor? {
        state.withLock { state in
            if case .monitor(let monitor) = state { monitor } else { nil }
        }
    }

    /// The same, made at the first use; nil where the system does not show its network.
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
