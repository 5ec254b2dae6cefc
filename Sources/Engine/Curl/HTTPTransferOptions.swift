import Wire

/// The options of an exchange, besides its request.
struct HTTPTransferOptions {
    /// The limit from the start to an established connection, including TLS; zero for none.
    var connectTimeout: Duration = .zero
    /// Whose `connectTimeout` this is, for errors.
    var owner = OptionOwner.rest
    /// Offers the content codings that can be decoded, and decodes the response.
    var decodes = true
    /// Accepts a body that is complete by its framing, but ends inside its content coding: a server
    /// that closes an event stream seldom ends the compression first.
    var mayEndInCoding = false
    /// Only over TLS, if the server agrees.
    var offersHTTP2 = true
    /// Waits for a connection that can be shared, rather than opening another.
    var prefersSharing = false
    var takesFreshConnection = false
    /// libcurl must not repeat a request that is not idempotent.
    var goesOutOnce = false
    var reportsProgress = false
    /// Storage of the response's body is overwritten before it is freed.
    var isSecret = false
}
