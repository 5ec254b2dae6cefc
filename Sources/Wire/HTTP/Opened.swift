/// What a server answered when it opened a connection, and by which connection.
public struct Opened: Sendable, Equatable {
    /// The answer, without a body; nil for a long poll whose first request the server holds without
    /// an answer.
    public package(set) var response: HTTPResponse?
    /// 10, 11, 20 or 30 for HTTP/1.0, 1.1, 2 and 3; 0 without an answer.
    public package(set) var httpVersion = 0
    /// The subprotocol that the server selected; "" for none.
    public package(set) var subprotocol = ""
    /// The answer's Sec-WebSocket-Extensions; "" for none.
    public package(set) var extensions = ""
    /// The other end of the connection, which a proxy is where there is one: "192.0.2.1:443",
    /// "[::1]:443" or the path of a Unix socket.
    public package(set) var remoteAddress = ""
    /// This end of it, in the same form.
    public package(set) var localAddress = ""
    /// The version of TLS, such as "TLSv1.3"; "" without TLS.
    public package(set) var tlsVersion = ""
    /// The cipher suite, such as "TLS_AES_256_GCM_SHA384"; "" without TLS.
    public package(set) var tlsCipher = ""

    package init() {}
}
