import Session
import Wire

/// What must follow an exchange, by a second reading of R1 to R7.
enum RESTVerdict {
    typealias Record = RESTGuardian.Record

    static func next(
        _ record: Record, _ head: ResponseHead, _ plan: RESTPlan, _ now: Instant
    ) -> RESTGuardian.Next {
        let location = head.values("Location").first
        if [301, 302, 303, 307, 308].contains(head.status),
            record.request.policy.redirects.maximum > 0
        {
            let isPlace = location.map { !$0.isEmpty } ?? false
            let mayHop = record.hops < record.request.policy.redirects.maximum
            guard isPlace, mayHop else { return .end }
            // A body stays with its origin.
            let leaves = location?.hasPrefix("http://b") == true && record.request.host != "b"
            let keepsBody = record.hasBody && !becomesGet(record, head)
            if leaves, keepsBody { return .end }
            return record.isBodyGone && !becomesGet(record, head) ? .end : .again
        }
        if record.isBodyGone { return .end }
        if head.status == 401, plan.renews, record.keepsOrigin, !record.wasAuthorized {
            return .credentials
        }
        if head.status == 421, !record.wasMisdirected {
            record.wasMisdirected = true
            return .replay
        }
        let isSafe = record.mayRepeat || record.request.policy.retriesUnsafe
        let repeats =
            [408, 429, 503].contains(head.status)
            || [425, 500, 502, 504].contains(head.status) && isSafe
        guard repeats, record.attempts < record.request.policy.attempts else { return .end }
        return retry(record, head, now)
    }

    /// Whether a redirect drops the body.
    static func becomesGet(_ record: Record, _ head: ResponseHead) -> Bool {
        switch head.status {
        case 303: record.method != "HEAD" && record.method != "GET"
        case 301: record.method == "POST"
        default: false
        }
    }

    private static func retry(
        _ record: Record, _ head: ResponseHead?, _ now: Instant
    ) -> RESTGuardian.Next {
        let asked = Duration.seconds(
            head?.values("Retry-After").first.flatMap { Int($0) } ?? 0)
        guard asked <= record.request.policy.retryAfterLimit else { return .end }
        return .retry(from: now, asked: asked)
    }

    static func next(
        _ record: Record, _ failure: HTTPFailure, _ now: Instant
    ) -> RESTGuardian.Next {
        if record.reception == .deliver, record.request.streamsAnswer { return .end }
        if isTaken(record), record.request.policy.needsHeadAlone { return .end }
        // The server has executed the request, but its response is invalid.
        if isTaken(record), failure.error.code == .protocolViolation,
            ["POST", "PATCH"].contains(record.method), !record.request.policy.retriesUnsafe
        {
            return .end
        }
        if failure.isFinal || record.isBodyGone { return .end }
        // Otherwise the server may have performed the request before the connection ended.
        let isSafe =
            failure.precedesRequest || record.mayRepeat || record.request.policy.retriesUnsafe
        if failure.isStale, !record.wasStale, isSafe {
            record.wasStale = true
            return .replay
        }
        if failure.precedesRequest, !record.isReachable { return .queue }
        // The request to which a redirect leads has not been sent yet.
        guard isSafe || record.next == .again, record.attempts < record.request.policy.attempts
        else { return .end }
        return retry(record, record.head, now)
    }

    private static func isTaken(_ record: Record) -> Bool {
        record.head.map { (200..<300).contains($0.status) } ?? false
    }

    /// An attempt that failed for lack of a network does not count.
    static func uncount(_ record: Record) { record.attempts -= 1 }

    /// Whether a request may end this way, and now.
    static func check(
        _ id: RESTSession.ID, _ record: Record, _ outcome: RESTOutcome, _ plan: RESTPlan,
        _ world: World
    ) {
        let policy = record.request.policy
        let counted = record.countedTime(world.now)
        switch outcome.error?.code {
        case .deadline:
            world.require(
                policy.latestEnd > .zero && counted >= policy.deadline, "\(id): early deadline")
            world.require(
                !record.request.streamsAnswer || record.reception != .deliver
                    || policy.hasOwnDeadline,
                "\(id): a deadline that is not its own ends a stream")
            if case .retry(let from, let asked) = record.next, plan.flaps.isEmpty,
                record.reception != .deliver
            {
                let least = max(
                    RESTGuardian.delay(policy, record.retries) / 2, asked / .seconds(1))
                let left = (policy.latestEnd - (from - record.submittedAt)) / .seconds(1)
                world.require(least < left, "\(id) waits beyond its deadline (R2)")
            }
        case .expired:
            world.require(
                policy.queueTime > .zero && world.now - record.submittedAt >= policy.queueTime,
                "\(id) expires early")
        case .auth:
            world.require(record.next == .end, "\(id) lacks credentials, and was given some")
        case nil:
            let status = record.head?.status ?? 0
            world.require((200..<300).contains(status), "\(id) ends well with \(status)")
        case .redirect, .insecureRedirect: world.require(record.next == .end, "\(id) gives up")
        default:
            world.require(
                !policy.needsHeadAlone || !isTaken(record), "\(id) was taken, and fails")
            // It gave up, so a retry must be impossible: the deadline would cut it off.
            guard case .retry(_, let asked) = record.next else {
                return world.require(record.next == .end, "\(id) gives up before \(record.next)")
            }
            let longest = max(asked, policy.backoff.maximum)
            world.require(
                policy.latestEnd > .zero && counted + longest >= policy.deadline,
                "\(id) gives up, and had time")
        }
    }
}
