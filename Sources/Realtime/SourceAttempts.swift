internal import Engine
internal import Session
import Wire

/// The options of an event source or a long poll that are consulted for each attempt.
protocol SourceOptions {
    typealias Header = (name: String, value: String)

    var headers: [Header] { get }
    var headerProvider: (@Sendable (_ attempt: Int) throws -> [Header])? { get }
    var onRequest: (@Sendable (_ attempt: Int, _ next: inout WebSocket.NextAttempt) throws -> Bool)?
    { get }
    var credentials: (@Sendable (HTTPResponse) async throws -> [Header]?)? { get }
}

/// The checks before an attempt and after a refusal.
struct SourceAttempts {
    var request: ((_ attempt: Int) throws(RealtimeError) -> Bool)?
    var credentials: ((HTTPResponse) throws(RealtimeError) -> CredentialsAnswer)?
}

extension SourceOptions {
    /// - Parameter end: called when an attempt is declined.
    func attempts<Source: HTTPSourceSession, Handlers: HTTPSourceHandlers>(
        of connection: HTTPSource<Source, Handlers>, _ end: @escaping () -> Void
    ) -> SourceAttempts {
        let headers = HeaderLayers(headers)
        var attempts = SourceAttempts()
        attempts.request = headers.asking(headerProvider, onRequest) {
            [unowned connection] (next) throws(RealtimeError) in
            guard let next else {
                // Close first, so that iterating tasks see the final state when they are notified.
                connection.close()
                return end()
            }
            if let url = next.url { try connection.setURL(url) }
            try connection.apply(headers)
        }
        if let credentials {
            attempts.credentials = { [unowned connection] response in
                connection.fetch(response, credentials) { endpoint, fresh in
                    headers.authorize(fresh)
                    try endpoint.apply(headers)
                }
                return .later
            }
        }
        return attempts
    }
}

extension Endpoint where Configuration: RequestHeaders {
    fileprivate func apply(_ headers: HeaderLayers) throws(RealtimeError) {
        try configure { (configuration) throws(RealtimeError) in
            configuration.clearHeaders()
            for header in headers.base {
                try configuration.addHeader(name: header.name, value: header.value)
            }
        }
        try replace(headers.overrides)
    }

    /// Sets headers, which replace those with the same names.
    func replace(_ headers: [SourceOptions.Header]) throws(RealtimeError) {
        try configure { (configuration) throws(RealtimeError) in
            for header in headers {
                try configuration.setHeader(name: header.name, value: header.value)
            }
        }
    }

    /// Fetches credentials in a task, for a handler that returns `.later`.
    /// - Parameter apply: puts the headers into the options.
    func fetch(
        _ response: HTTPResponse,
        _ credentials:
            @escaping @Sendable (HTTPResponse) async throws -> [SourceOptions.Header]?,
        apply: @escaping @Sendable (Endpoint, [SourceOptions.Header]) throws -> Void
    ) {
        Task { [weak self] in
            do {
                let fresh = try await credentials(response)
                guard let self else { return }
                if let fresh { try apply(self, fresh) }
                try? completeCredentials(fresh != nil)
            } catch {
                // Fails once the object is closed; nobody waits for the credentials then.
                try? self?.completeCredentials(false, because: .noCredentials(error))
            }
        }
    }
}
