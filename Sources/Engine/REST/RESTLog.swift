import Session
import Wire

// The log lines of a request; without query, payload or credentials.
extension RESTCall {
    private var name: String { "REST \(number): \(request.http.method) \(url.text.withoutQuery)" }

    func logStart() {
        Log.write(
            .debug,
            "\(name), attempt \(driver.session.attempt(of: id)) of \(request.policy.attempts)")
    }

    /// Call when it was submitted.
    func logWait() {
        if case .network? = driver.session.next(of: id, now: Loop.now()) { log(.network) }
    }

    func log(_ next: RESTNext) {
        switch next {
        case .attempt(let number, let count, let delay, let cause):
            Log.write(
                .info,
                "\(name): attempt \(number) of \(count) \(delay.fromNow): \(cause.message)")
        case .network: Log.write(.info, "\(name): there is no network; it waits for one")
        }
    }

    func logEnd(_ outcome: RESTOutcome) {
        let status = outcome.head.map { " with \($0.status)" } ?? ""
        let times = outcome.attempts == 1 ? "" : " after \(outcome.attempts) attempts"
        if let error = outcome.error, error.code != .httpStatus {
            Log.write(.info, "\(name) failed\(times): \(error.message)")
        } else {
            Log.write(.info, "\(name) was answered\(status)\(times)")
        }
    }
}
