/// A message of the server.
package enum DDPMessage: Sendable, Equatable {
    /// The server has accepted our version.
    case connected(session: String?)
    /// It wants another version.
    case failed(version: String)
    /// - Parameter id: its JSON text; nil if it has none.
    case ping(id: [UInt8]?)
    case pong
    case document(DDPDocumentMessage)
    /// These subscriptions have sent their initial documents.
    case ready([String])
    /// A subscription has ended.
    case nosub(id: String, DDPError?)
    case result(id: String, Result<EJSON, DDPError>)
    /// All documents that these calls wrote have been sent.
    case updated([String])
    /// The server did not understand a message.
    /// - Parameter offending: that message, a JSON text.
    case error(reason: String, offending: [UInt8]?)
}

/// A change of one document.
package struct DDPDocumentMessage: Sendable, Equatable {
    package enum Change: Sendable, Equatable {
        case added(EJSONObject)
        /// - Parameter before: nil for the end.
        indirect case addedBefore(EJSONObject, before: DocumentID?)
        case changed(EJSONObject, cleared: [String])
        indirect case movedBefore(DocumentID?)
        case removed
    }

    package let collection: String
    package let id: DocumentID
    package var change: Change
}

/// What a text from the server is.
package enum DDPFrame: Sendable, Equatable {
    case message(DDPMessage)
    /// Neither processed nor an error.
    /// - Parameters:
    ///   - reason: for the debug log.
    ///   - isMessage: has a `msg`, and so counts as a message of the session.
    case ignored(reason: String, isMessage: Bool)
    /// It would take more memory than a message may.
    case tooLarge(RealtimeError)

    package var isResult: Bool {
        if case .message(.result) = self { true } else { false }
    }

    /// Whether the server counts it as a message of the session.
    package var counts: Bool {
        switch self {
        case .message(.ping), .message(.pong): false
        case .message: true
        case .ignored(_, let isMessage): isMessage
        case .tooLarge: false
        }
    }
}
