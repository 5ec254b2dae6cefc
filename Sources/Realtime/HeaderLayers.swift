import Synchronization
internal import Wire

/// The headers of an object's attempts, in layers: those of its options, overridden by those of its
/// header provider for this attempt, overridden by the credentials that were fetched last.
final class HeaderLayers: Sendable {
    typealias Header = (name: String, value: String)

    private struct Layers {
        var base: [Header]
        var provided: [Header] = []
        var credentials: [Header] = []
    }

    private let layers: Mutex<Layers>

    init(_ base: [Header]) { layers = Mutex(Layers(base: base)) }

    var base: [Header] { layers.withLock { $0.base } }

    /// The headers that override `base`, in this order.
    var overrides: [Header] { layers.withLock { $0.provided + $0.credentials } }

    /// Headers from the provider override credentials that were fetched before.
    private func provide(_ headers: [Header]) {
        layers.withLock { layers in
            layers.provided = headers
            layers.credentials.removeAll { old in
                headers.contains { $0.name.equalsIgnoringASCIICase(old.name) }
            }
        }
    }

    func authorize(_ headers: [Header]) { layers.withLock { $0.credentials = headers } }

    /// The check before each attempt; nil if the caller set no functions for it.
    /// - Parameter begin: applies the result, and the new URL if there is one; its argument is nil
    ///   if the attempt is declined.
    func asking(
        _ provider: (@Sendable (_ attempt: Int) throws -> [Header])?,
        _ onRequest:
            (@Sendable (_ attempt: Int, _ next: inout WebSocket.NextAttempt) throws -> Bool)?,
        _ begin: @escaping (_ next: WebSocket.NextAttempt?) throws(RealtimeError) -> Void
    ) -> ((_ attempt: Int) throws(RealtimeError) -> Bool)? {
        guard provider != nil || onRequest != nil else { return nil }
        return { [self] (attempt) throws(RealtimeError) in
            var next = WebSocket.NextAttempt()
            let continues: Bool
            do {
                if let provider { provide(try provider(attempt)) }
                continues = try onRequest?(attempt, &next) ?? true
            } catch {
                throw error as? RealtimeError ?? RealtimeError(.cancelled, "\(error)")
            }
            if continues, let headers = next.headers { layers.withLock { $0.base = headers } }
            try begin(continues ? next : nil)
            return continues
        }
    }
}

extension RealtimeError {
    /// The error of a credentials function that threw.
    static func noCredentials(_ error: any Error) -> RealtimeError {
        error as? RealtimeError ?? RealtimeError(.auth, "there are no credentials: \(error)")
    }
}
