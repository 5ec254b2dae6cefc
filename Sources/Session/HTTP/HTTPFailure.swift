package import Wire

/// How an exchange failed below HTTP: no whole answer came.
package struct HTTPFailure: Error, Sendable {
    package let error: RealtimeError
    /// The server cannot have seen the request: it may be sent again, whatever it does (R3).
    package let precedesRequest: Bool
    /// Trying again would end the same way: a public key that is not the pinned one.
    package let isFinal: Bool
    /// A connection that was kept from an earlier exchange died before a byte of the answer (R6),
    /// and the request's body could not be sent again without its owner.
    package let isStale: Bool
    /// Of an answer that is refused for its very head, so that it was not handed on: its status
    /// tells what became of the request.
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
