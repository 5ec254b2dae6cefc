internal import Engine
internal import Session
import Wire

/// The options of an event source or a long poll that are consulted for each attempt.
protocol SourceOptions {
    typealias Header = (name: String, value: String)
    typealias HeaderProvider = @Sendable (_ attempt: Int) async throws -> [Header]
    typealias OnRequest =
        @Sendable (_ attempt: Int, _ next: inout NextAttempt) async throws -> Bool

    var headers: [Header] { get }
    var headerProvider: HeaderProvider? { get }
    var onRequest: OnRequest? { get }
    var credentials: (@Sendable (HTTPResponse) async throws -> [Header]?)? { get }
    var executor: HandlerExecutor { get }
}

/// The checks before an attempt and after a refusal.
struct SourceAttempts {
    var request: ((_ attempt: Int) throws(RealtimeError) -> Bool)?
    var credentials: ((HTTPResponse) throws(RealtimeError) -> CredentialsAnswer)?
}

extension SourceOptions {
    /// - Parameter end: called when an attempt is declined.
    func attempts<Source: HTTPSourceSession, Handlers: HTTPSourceHandlers>(
        of connection: HTTPSource<Source, Handlers>, _ end: @escaping @Sendable () -> Void
    ) -> SourceAttempts {
        let headers = HeaderLayers(headers)
        var attempts = SourceAttempts()
        if headerProvider != nil || onRequest != nil {
            attempts.request = { [unowned connection] (attempt) throws(RealtimeError) in
                // The functions may take time, and the loop must not wait for them.
                try connection.deferAttempt()
                prepare(attempt, headers, of: connection, end)
                return true
            }
        }
        if let credentials {
            attempts.credentials = { [executor, unowned connection] response in
                connection.fetch(response, credentials, on: executor) { endpoint, fresh in
                    headers.authorize(fresh)
                    try endpoint.apply(headers)
                }
                return .later
            }
        }
        return attempts
    }

    /// Asks the functions of the options about an attempt, which waits for them.
    private func prepare<Source: HTTPSourceSession, Handlers: HTTPSourceHandlers>(
        _ attempt: Int, _ headers: HeaderLayers, of connection: HTTPSource<Source, Handlers>,
        _ end: @escaping @Sendable () -> Void
    ) {
        executor.perform { [headerProvider, onRequest, weak connection] in
            do throws(RealtimeError) {
                let next = try await headers.ask(about: attempt, headerProvider, onRequest)
                guard let connection else { return }
                guard let next else {
                    // Close first, so that iterating tasks see the final state when they are
                    // notified.
                    connection.close()
                    return end()
                }
                if let url = next.url { try connection.setURL(url) }
                try connection.apply(headers)
                try connection.attemptIsReady(true)
            } catch {
                // Fails once the object is closed; nobody waits for an answer then.
                try? connection?.attemptIsReady(false, because: error)
            }
        }
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
        on executor: HandlerExecutor = .main,
        apply: @escaping @Sendable (Endpoint, [SourceOptions.Header]) throws -> Void
    ) {
        executor.perform { [weak self] in
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
