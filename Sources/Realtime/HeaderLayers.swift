import Synchronization
internal import Wire

/// The headers of an object that makes attempts: those of its options, over them what its header
/// provider gave for this attempt, and over both the credentials that were fetched last.
final class HeaderLayers: Sendable {
    typealias Header = (name: String, value: String)

    private struct Upper {
        var provided: [Header] = []
        var credentials: [Header] = []
    }

    let base: [Header]
    private let upper = Mutex(Upper())

    init(_ base: [Header]) { self.base = base }

    /// What is laid over `base`, in this order.
    var over: [Header] { upper.withLock { $0.provided + $0.credentials } }

    /// A provider that names a header is newer than credentials that were fetched before.
    func provide(_ headers: [Header]) {
        upper.withLock { upper in
            upper.provided = headers
            upper.credentials.removeAll { old in
                headers.contains { $0.name.equalsIgnoringASCIICase(old.name) }
            }
        }
    }

    func authorize(_ headers: [Header]) { upper.withLock { $0.credentials = headers } }
}

extension RealtimeError {
    /// What a source of credentials threw.
    static func noCredentials(_ error: any Error) -> RealtimeError {
        error as? RealtimeError ?? RealtimeError(.auth, "there are no credentials: \(error)")
    }
}
