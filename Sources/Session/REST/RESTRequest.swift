package import Wire

/// A request as its caller made it, with how it is tried. A class: many hold it, none changes it.
package final class RESTRequest: Sendable {
    package let http: HTTPRequest
    package let policy: RESTPolicy
    /// A streamed body can be had from its beginning again.
    package let canRewind: Bool
    /// It was sent before: it is to begin anew also for this request.
    package let rewinds: Bool
    /// The caller is given the answer's body as it comes: once it has begun it is the last one.
    package let streamsAnswer: Bool
    /// Its URL is where the client's own credential may go.
    package let isTrusted: Bool

    package init(
        _ http: HTTPRequest, _ policy: RESTPolicy = RESTPolicy(), canRewind: Bool = false,
        rewinds: Bool = false, streamsAnswer: Bool = false, isTrusted: Bool = true
    ) {
        self.http = http
        self.policy = policy
        self.canRewind = canRewind
        self.rewinds = rewinds
        self.streamsAnswer = streamsAnswer
        self.isTrusted = isTrusted
    }
}

/// How a request ended (R7): with an answer of 2xx when there is no error. A class, as it goes from
/// hand to hand.
package final class RESTOutcome: Sendable {
    package let error: RealtimeError?
    /// Of the last answer; nil when none came.
    package let head: ResponseHead?
    /// Where the last attempt went, after redirects.
    package let url: HTTPURL
    /// Those counted, the first one too; 0 when it never began.
    package let attempts: Int
    /// What the last answer asked for.
    package let retryAfter: Duration?
    /// The answer's body was received for the caller.
    package let hasBody: Bool

    package init(
        error: RealtimeError?, head: ResponseHead? = nil, url: HTTPURL, attempts: Int = 0,
        retryAfter: Duration? = nil, hasBody: Bool = false
    ) {
        self.error = error
        self.head = head
        self.url = url
        self.attempts = attempts
        self.retryAfter = retryAfter
        self.hasBody = hasBody
    }
}
