/// The response with which a server opened a connection, and details of that connection.
public struct Opened: Sendable, Equatable {
    /// The response, without a body; nil for a long poll whose first request is still waiting for
    /// one.
    public package(set) var response: HTTPResponse?
    /// 10, 11, 20 or 30 for HTTP/1.0, 1.1, 2 and 3; 0 without a response.
    public package(set) var httpVersion = 0
    /// The subprotocol that the server selected; "" for none.
    public package(set) var subprotocol = ""
    /// The response's Sec-WebSocket-Extensions; "" for none.
    public package(set) var extensions = ""
    /// The peer of the connection, which is the proxy if there is one: "192.0.2.1:443", "[::1]:443"
    /// or the path of a Unix socket.
    public package(set) var remoteAddress = ""
    /// The local end of the connection, in the same form.
    public package(set) var localAddress = ""
    /// The TLS version, such as "TLSv1.3"; "" without TLS.
    public package(set) var tlsVersion = ""
    /// The cipher suite, such as "TLS_AES_256_GCM_SHA384"; "" without TLS.
    public package(set) var tlsCipher = ""

    package init() {}
}
