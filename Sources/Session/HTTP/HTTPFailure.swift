package import Wire

/// How an exchange failed below HTTP: no whole answer came.
package struct HTTPFailure: Error, Sendable {
    package let error: RealtimeError
    /// The server cannot have seen the request: it may be sent again, whatever it does (R3).
    package let precedesRequest: Bool
    /// Trying again would end the same way: a public key that is not the pinned one.
    package let isFinal: Bool

    package init(_ error: RealtimeError, precedesRequest: Bool = false, isFinal: Bool = false) {
        self.error = error
        self.precedesRequest = precedesRequest
        self.isFinal = isFinal
    }
}
