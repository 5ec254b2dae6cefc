package import Documents
package import Wire

/// The options of a Meteor client: of its connections, of its protocol, and of its documents.
/// - Object: ddp, DDPClient.Options, before the client is used
package struct DDPClientConfiguration: RequestHeaders, Sendable {
    package var address: DDPAddress
    package var fields: [HeaderField] { headers.all }
    /// Sent with the handshake of the WebSocket, and with each request of SockJS. Names that begin
    /// with Sec-WebSocket- are reserved for the handshake and refused. Cookies that the server or a
    /// load balancer sets are sent back by themselves.
    /// - Option: headers, headers credentials
    package var headers = HeaderFields()
    /// A Meteor client makes it at once.
    /// - Option: network, network
    package var network = NetworkConfiguration()
    /// For the WebSocket: requests of SockJS follow no redirects.
    /// - Options: Redirects.Rules, max_redirects = 5
    package var redirects = Redirects.Rules(of: .ddp, maximum: 5)
    /// Whether the WebSocket offers permessage-deflate, and SockJS accepts compressed responses.
    /// - Option: compression, flag
    package var compression = true
    /// Whether SockJS offers HTTP/2 in the TLS handshake. It is never used through a proxy.
    /// - Option: http2, flag
    package var http2 = true
    /// Whether SockJS, which needs only HTTP requests, is used where WebSockets do not get through.
    /// - Option: sockjs_fallback, flag, swift sockJSFallback
    package var mayFallBack = true
    /// The largest message received, after decompression; with SockJS the largest frame, which has
    /// all messages since the last one. If a message has more than 65,536 values and names of
    /// fields, each of them counts as at least 64 bytes. A larger message ends the connection,
    /// which is then attempted again.
    /// - Option: max_message_bytes, bytes, python max_size
    package var receiveLimit = 16 << 20
    /// How many bytes may wait to be sent on an open connection. A single message may be longer.
    /// Calls and subscriptions that wait for a connection do not count.
    /// - Option: max_unsent_bytes, bytes 1...
    package var unsentLimit = 64 << 20
    /// Keeps the user logged in between runs: the file in which the login's token is kept. Several
    /// clients and processes may share it. It is created with mode 0600, and replaced as a whole.
    /// - Option: token_file, path
    package var tokenFile: String?
    /// Keeps the documents between runs: the file in which those of the server are written, at most
    /// once a second. A client that starts has them at once; those that the server does not send
    /// again are removed when all subscriptions are ready, or refused, that were ready before, or
    /// after the quiescence limit. Documents of another user are not used. The file is created with
    /// mode 0600, and replaced as a whole. Each client needs a file of its own.
    /// - Option: document_file, path
    package var documentFile: String?

    /// - Options: DDPConfiguration
    package var session = DDPConfiguration()
    /// The most memory, in bytes as the client estimates them, that documents of the server may
    /// take. A server that sends more ends the client for good, because the documents would not be
    /// those of the server any more.
    /// - Option: max_document_bytes, bytes
    package var maximumDocumentBytes = 1 << 30

    /// A store with this limit.
    package var emptyStore: DocumentStore {
        DocumentStore(maximumBytes: maximumDocumentBytes == 0 ? .max : maximumDocumentBytes)
    }

    package init(_ address: DDPAddress) {
        self.address = address
        session.server = address.webSocket.displayName
    }

    package static func check(_ name: String, _ value: String) throws(RealtimeError) {
        try ClientHandshake.validate(fieldName: name, value: value)
    }
}
