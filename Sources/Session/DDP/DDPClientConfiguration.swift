import Documents
package import Wire

/// The options of a Meteor client: of its protocol, of its documents, and of its connections.
package struct DDPClientConfiguration: Sendable {
    package var session = DDPConfiguration()
    package var socket: DDPSocketConfiguration
    /// Whether SockJS is used where WebSockets do not get through.
    package var mayFallBack = true
    /// See `DocumentStore`.
    package var maximumDocumentBytes = DocumentStore.defaultMaximumBytes

    package init(_ address: DDPAddress) { socket = DDPSocketConfiguration(address) }
}
