/// What an exchange wants beside its request.
struct HTTPTransferOptions {
    /// From the start to a connection that is ready, TLS included; zero for none.
    var connectTimeout: Duration = .zero
    /// Offers the content codings that can be decoded, and decodes the answer.
    var decodes = true
    /// A body whose framing is whole may end inside of its content coding: a server that closes
    /// an event stream seldom ends its compression first.
    var mayEndInCoding = false
    /// Over TLS, where the server agrees to it.
    var offersHTTP2 = true
    /// Waits for a connection that can be shared rather than opening another.
    var prefersSharing = false
    var takesFreshConnection = false
    /// A request that may not be repeated is not sent again by libcurl either.
    var goesOutOnce = false
    var reportsProgress = false
}
