/// Options of all objects that make HTTP requests.
package struct HTTPOptions: Sendable, Equatable {
    /// Whether compressed responses are requested and decoded: gzip, deflate, and, if libbrotlidec
    /// and libzstd are installed, br and zstd. A response that cannot be decoded is an
    /// RT_ERROR_PROTOCOL. What is not a known coding, such as "utf-8", is ignored, and the body
    /// passed on as it came.
    /// - Option: compression, flag
    package var compression = true
    /// Whether HTTP/2 is offered in the TLS handshake. It is never used through a proxy.
    /// - Option: http2, flag
    package var http2 = true
    /// The time limit for opening a connection: name resolution, TCP and TLS.
    /// - Option: connect_timeout, limit
    package var connectTimeout: Duration = .seconds(15)

    package init(connectTimeout: Duration = .seconds(15)) {
        self.connectTimeout = connectTimeout
    }
}
