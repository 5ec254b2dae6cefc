package import Wire

/// The settings of the connections to a Meteor server.
package struct DDPSocketConfiguration: Sendable {
    package var address: DDPAddress
    /// Sent with the handshake of the WebSocket, and with each request of SockJS.
    package var fields: [HeaderField] = []
    package var network = NetworkConfiguration()
    /// For the WebSocket: requests of SockJS follow no redirects.
    package var redirects = Redirects.Rules(maximum: 5)
    package var http = HTTPOptions()
    /// The largest message received, after decompression; with SockJS the largest frame, which has
    /// all messages since the last one.
    package var receiveLimit = 64 << 20
    /// How many bytes may wait to be sent. A single message may be longer.
    package var unsentLimit = 64 << 20

    package init(_ address: DDPAddress) { self.address = address }
}
