/// The words that mean the same on every object.
enum Vocabulary {
    /// Words at the end of a function's name that would say the same as one of the vocabulary, and
    /// what to say instead.
    private static let refused: [(word: String, instead: String)] = [
        ("establish", "_start begins and never waits"),
        ("open", "_start begins and never waits"),
        ("begin", "_start begins and never waits"),
        ("connect_and_wait", "_connect(…, timeout_ms) begins and waits"),
        ("disconnect", "_close is the orderly end"),
        ("stop", "_close is the orderly end"),
        ("shutdown", "_close is the orderly end"),
        ("destroy", "_free ends at once"),
        ("release", "_free ends at once"),
        ("reconnect", "_restart drops what there is and connects again"),
        ("network_changed", "_retry_now says that the network is back"),
        ("read", "_receive waits for the next message"),
        ("next", "_receive waits for the next message"),
        ("on_opened", "_on_open is called when it is open"),
        ("on_connected", "_on_open is called when it is open"),
        ("on_close", "_on_closed is called at the end"),
        ("on_disconnected", "_on_closed is called at the end"),
        ("on_end", "_on_closed is called at the end"),
        ("on_failure", "_on_error receives failures"),
        ("on_state_change", "_on_state receives changes of the state"),
        ("state", "_get_state returns an rt_state"),
    ]

    /// Names that mean something else: a loop stops running, a backoff has a next delay, and a
    /// reconnect is also a moment. Programs that were written for Pusher's or Meteor's own clients
    /// also report that the network is gone, which `_retry_now` cannot say.
    private static let exceptions: Set<String> = [
        "rt_loop_stop", "rt_websocket_on_reconnect", "rt_backoff_next",
        "rt_pusher_network_changed", "rt_ddp_network_changed",
    ]

    /// Functions of connection objects whose form is fixed: they begin without waiting, or wait for
    /// at most `timeout_ms`.
    private static let waiting: Set<String> = ["connect", "receive", "receive_batch"]
    private static let immediate: Set<String> = [
        "start", "close", "retry_now", "restart", "get_state",
    ]

    /// Functions without `timeout_ms` that wait for another thread.
    static let waitingWithoutLimit: Set<String> = ["rt_loop_run", "rt_loop_stop_and_wait"]

    /// Why a function breaks the vocabulary; nil if it does not.
    /// - Parameter noun: of the function's handle, such as `rt_websocket`.
    static func objection(
        to name: String, of noun: String, parameters: [String]
    ) -> String? {
        guard !exceptions.contains(name), name.hasPrefix(noun + "_") else { return nil }
        let verb = String(name.dropFirst(noun.count + 1))
        if let (_, instead) = refused.first(where: { $0.word == verb }) {
            return "'\(name)' breaks the vocabulary: \(instead)"
        }
        let isTimed = parameters.contains("timeout_ms")
        if waiting.contains(verb), !isTimed {
            return "'\(name)' breaks the vocabulary: a call that waits takes 'timeout_ms'"
        }
        if immediate.contains(verb), isTimed {
            return "'\(name)' breaks the vocabulary: '_\(verb)' never waits"
        }
        return nil
    }
}
