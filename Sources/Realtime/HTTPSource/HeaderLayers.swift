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

    /// Asks the program's functions about an attempt.
    /// - Returns: what they change; nil if they decline the attempt.
    func ask(
        about attempt: Int, _ provider: SourceOptions.HeaderProvider?,
        _ onRequest: SourceOptions.OnRequest?
    ) async throws(RealtimeError) -> NextAttempt? {
        var next = NextAttempt()
        do {
            if let provider { provide(try await provider(attempt)) }
            if let onRequest, try await !onRequest(attempt, &next) { return nil }
        } catch {
            throw error as? RealtimeError ?? RealtimeError(.cancelled, "\(error)")
        }
        if let headers = next.headers { layers.withLock { $0.base = headers } }
        return next
    }
}

extension RealtimeError {
    /// The error of a credentials function that threw.
    static func noCredentials(_ error: any Error) -> RealtimeError {
        error as? RealtimeError ?? RealtimeError(.auth, "there are no credentials: \(error)")
    }
}
