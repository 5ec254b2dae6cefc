import Synchronization
internal import Wire

/// The headers of an object that makes attempts: those of its options, over them what its header
/// provider gave for this attempt, and over both the credentials that were fetched last.
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

    /// What is laid over `base`, in this order.
    var over: [Header] { layers.withLock { $0.provided + $0.credentials } }

    /// A provider that names a header is newer than credentials that were fetched before.
    private func provide(_ headers: [Header]) {
        layers.withLock { layers in
            layers.provided = headers
            layers.credentials.removeAll { old in
                headers.contains { $0.name.equalsIgnoringASCIICase(old.name) }
            }
        }
    }

    func authorize(_ headers: [Header]) { layers.withLock { $0.credentials = headers } }

    /// Asks the caller's functions before an attempt, if there are any.
    /// - Parameter begin: has what they said taken over, with the URL if it is another; told nil
    ///   when there is to be none.
    func asking(
        _ provider: (@Sendable (_ attempt: Int) throws -> [Header])?,
        _ onRequest:
            (@Sendable (_ attempt: Int, _ next: inout WebSocket.NextAttempt) throws -> Bool)?,
        _ begin: @escaping (_ next: WebSocket.NextAttempt?) throws(RealtimeError) -> Void
    ) -> ((_ attempt: Int) throws(RealtimeError) -> Bool)? {
        guard provider != nil || onRequest != nil else { return nil }
        return { [self] (attempt) throws(RealtimeError) in
            var next = WebSocket.NextAttempt()
            let goesOn: Bool
            do {
                if let provider { provide(try provider(attempt)) }
                goesOn = try onRequest?(attempt, &next) ?? true
            } catch {
                throw error as? RealtimeError ?? RealtimeError(.cancelled, "\(error)")
            }
            if goesOn, let headers = next.headers { layers.withLock { $0.base = headers } }
            try begin(goesOn ? next : nil)
            return goesOn
        }
    }
}

extension RealtimeError {
    /// What a source of credentials threw.
    static func noCredentials(_ error: any Error) -> RealtimeError {
        error as? RealtimeError ?? RealtimeError(.auth, "there are no credentials: \(error)")
    }
}
