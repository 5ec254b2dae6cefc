package import Wire

/// An exchange that failed below HTTP: no complete response arrived.
package struct HTTPFailure: Error, Sendable {
    package let error: RealtimeError
    /// The server cannot have seen the request, so it may be repeated even if it is not idempotent
    /// (R3).
    package let precedesRequest: Bool
    /// Another attempt would fail in the same way: the public key is not the pinned one.
    package let isFinal: Bool
    /// A connection kept from an earlier exchange ended before the first byte of the response (R6).
    /// The server may have performed the request nevertheless, unless `precedesRequest` is set.
    package let isStale: Bool
    /// The head of a response that was rejected because of it, and therefore not delivered. Its
    /// status shows what became of the request.
    package let head: ResponseHead?

    package init(
        _ error: RealtimeError, precedesRequest: Bool = false, isFinal: Bool = false,
        isStale: Bool = false, head: ResponseHead? = nil
    ) {
        self.error = error
        self.precedesRequest = precedesRequest
        self.isFinal = isFinal
        self.isStale = isStale
        self.head = head
    }
}
