import Session
import Wire

// The log lines of a request; without query, payload or credentials.
extension RESTCall {
    private var name: String { "REST \(number): \(request.http.method) \(url.text.withoutQuery)" }

    func logStart() {
        Log.write(
            .debug,
            "\(name), attempt \(client.session.attempt(of: id)) of \(request.policy.attempts)")
    }

    func logWait() { Log.write(.info, "\(name): there is no network; it waits for one") }

    func log(_ next: RESTNext) {
        Log.write(
            .info,
            "\(name): attempt \(next.number) of \(next.count) \(next.delay.fromNow):"
                + " \(next.cause.message)")
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
