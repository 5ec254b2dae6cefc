internal import Documents
internal import Engine
import Synchronization
internal import Wire

/// Reports the documents that do not fit their models, each once until it changes.
final class Misfits: Sendable {
    private struct State {
        var handler: Handler<@Sendable (any Error) -> Void>?
        /// Why documents do not fit, as far as it was reported.
        var reported: [DocumentKey: String] = [:]
    }

    private let state = Mutex(State())
    private let dispatcher: SourceDispatcher

    init(_ dispatcher: SourceDispatcher) { self.dispatcher = dispatcher }

    /// How many reports are remembered.
    private static let limit = 1_000

    func setHandler(_ handler: Handler<@Sendable (any Error) -> Void>?) {
        let old = state.withLock { exchange(&$0.handler, with: handler) }
        withExtendedLifetime(old) {}
    }

    func report(_ key: DocumentKey, _ error: any Error) {
        let why = "\(error)"
        let (isNew, handler) = state.withLock { state in
            guard state.reported[key] != why else { return (false, state.handler) }
            if state.reported.count >= Misfits.limit { state.reported = [:] }
            state.reported[key] = why
            return (true, state.handler)
        }
        guard isNew else { return }
        Engine.Log.write(
            .warning, "a document does not fit its model, and is left out: \(why)")
        guard let handler else { return }
        dispatcher.run(on: handler.isolation) { handler.call(error) }
    }

    /// The document fits.
    func forget(_ key: DocumentKey) {
        state.withLock { if !$0.reported.isEmpty { $0.reported[key] = nil } }
    }
}
