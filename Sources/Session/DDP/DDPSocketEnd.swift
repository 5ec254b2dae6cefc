package import Wire

/// How the connection of one attempt ended.
package struct DDPSocketEnd: Sendable, Equatable {
    /// The code with which the server closed it: of WebSocket, or of SockJS. nil if it did not.
    package var closeCode: Int?
    package var reason: String
    /// nil if it was closed properly, by either side.
    package var error: RealtimeError?

    package init(closeCode: Int? = nil, reason: String = "", error: RealtimeError? = nil) {
        self.closeCode = closeCode
        self.reason = reason
        self.error = error
    }

    /// More bytes would wait to be sent than may.
    /// - Parameter server: its name, for the message.
    package static func full(limit: Int, server: String) -> DDPSocketEnd {
        DDPSocketEnd(
            error: RealtimeError(
                .bufferFull,
                "more than \(limit) bytes wait to be sent to \(server)"
                    + OptionOwner.ddp.mention(.maxUnsentBytes)))
    }
}
