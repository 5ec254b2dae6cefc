import Wire

/// HTTP statuses that may change with another attempt (RFC 9110 §15.5, §15.6, RFC 6585 §4).
package enum TemporaryStatus {
    /// Refusals of a request that was not processed.
    static let refusals = [408, 425, 429]
    /// Failures of a server, or of a gateway in front of it. Those above 511 are Cloudflare's: the
    /// origin answered nothing valid (520), refuses connections (521), does not answer (522, 524),
    /// or is unreachable (523, 530).
    static let failures = [500, 502, 503, 504, 520, 521, 522, 523, 524, 530]
    /// Both.
    package static let all = refusals + failures

    /// Whether another server of the same name may answer otherwise. The next attempt uses a new
    /// connection, so that the name is looked up again. After 429 it need not: that server is up,
    /// and counts the client's requests.
    package static func mayDependOnServer(_ status: Int) -> Bool {
        (400...599).contains(status) && status != 429
    }

    /// Whether the server, or the one behind a gateway, is out of service, so that its connection
    /// is not kept for other requests either. Not after 504 and 524, with which gateways end polls,
    /// nor after 500, which a single resource may cause.
    package static func isOutOfService(_ status: Int) -> Bool {
        failures.contains(status) && status != 500 && !isGatewayTimeout(status)
    }

    /// Whether a client whose attempt was refused leaves that server, so that its connection is not
    /// kept: a later attempt might find it again. Credentials (401, 407) are sent on the same one.
    package static func leavesServer(_ status: Int) -> Bool {
        mayDependOnServer(status) && status != 401 && status != 407 && !isGatewayTimeout(status)
    }

    /// Whether a gateway gave up the wait for the server's response.
    static func isGatewayTimeout(_ status: Int) -> Bool { status == 504 || status == 524 }

    /// Checks a status after which the caller wants another attempt. 401 and 407 ask for
    /// credentials instead.
    static func checked(_ status: Int) throws(RealtimeError) -> Int {
        guard (400...599).contains(status), status != 401, status != 407 else {
            throw RealtimeError(
                .invalidArgument,
                "the status to retry is \(status); 400 to 599 is expected, except 401 and 407")
        }
        return status
    }
}
