package import Wire

/// A request with its policy. A class, because several objects hold it; it never changes.
package final class RESTRequest: Sendable {
    package let http: HTTPRequest
    package let policy: RESTPolicy
    /// Whether a streamed body can be read from its beginning again.
    package let canRewind: Bool
    /// Whether the body was used before, so that it must be rewound even for the first attempt.
    package let rewinds: Bool
    /// Whether the response's body is delivered as it arrives. Once it begins, no attempt follows.
    package let streamsAnswer: Bool
    /// Whether the client's own credential may be sent to its URL.
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

/// The result of a request (R7): a response with status 2xx if there is no error. A class, because
/// it is passed on several times.
package final class RESTOutcome: Sendable {
    package let error: RealtimeError?
    /// The head of the last response; nil if there was none.
    package let head: ResponseHead?
    /// The URL of the last attempt, after redirects.
    package let url: HTTPURL
    /// How many attempts were counted, including the first; 0 if the request never began.
    package let attempts: Int
    /// The wait that the last response asked for.
    package let retryAfter: Duration?
    /// Whether the response's body was received for the caller.
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
