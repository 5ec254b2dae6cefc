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
        if case .network? = driver.session.next(of: id, now: Loop.now()) { logNext() }
    }

    /// Call after an exchange: logs whether another follows, when and why.
    func logNext() {
        switch driver.session.next(of: id, now: Loop.now()) {
        case .attempt(let number, let count, let delay, let cause):
            Log.write(
                .info, "\(name): attempt \(number) of \(count) \(delay.fromNow): \(cause)")
        case .network: Log.write(.info, "\(name): there is no network; it waits for one")
        case nil: break
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
