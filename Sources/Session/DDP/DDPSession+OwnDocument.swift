package import Documents
import Wire

/// The document of the user who is logged in, while it is not what the present session has sent.
/// The server sends it again some time after the login of a connection has ended.
struct DDPOwnDocument: Sendable {
    /// It is kept, though this session has not sent it yet, or has removed it; nil otherwise.
    var kept: DocumentKey?
    /// A login has ended, and the document may follow until then.
    var due: Instant?

    /// Where Meteor's servers publish users.
    static let collection = "users"
    /// How long after a login its user's document may follow.
    static let delay = Duration.seconds(1)
}

// The user's own document does not vanish with each connection. It stays until the server sends it
// again, or does not in time: a new session sends everything anew, and for a login on a session
// that it has resumed the server removes the document and adds it (M13).
extension DDPSession {
    /// The document of the user who is logged in; nil if nobody is, or it is not there.
    package var userDocument: Found? {
        mutating get {
            guard let key = ownKey, let fields = store.document(key) else { return nil }
            return Found(id: key.id, fields: fields)
        }
    }

    private var ownKey: DocumentKey? {
        accounts.userID.flatMap { DocumentID(.string($0)) }.map {
            DocumentKey(collection: DDPOwnDocument.collection, id: $0)
        }
    }

    /// A login is in progress, or will be tried again.
    private var isLoginPending: Bool {
        accounts.retryDue != nil
            || methods.byID.values.contains { method in
                switch method.purpose {
                case .login, .resume: true
                case .application, .logout, .newToken: false
                }
            }
    }

    /// Whether a document stays, which the server has removed or has not sent: it is the user's
    /// own, and is about to come with a login. If so, it is kept from now on.
    mutating func keepsOwnDocument(_ key: DocumentKey) -> Bool {
        guard key.collection == DDPOwnDocument.collection, key == ownKey,
            store.document(key) != nil, own.due != nil || isLoginPending
        else { return false }
        own.kept = key
        return true
    }

    /// A new session begins.
    /// - Parameter hadSession: there was another one before.
    mutating func keepOwnDocument(hadSession: Bool) {
        own = DDPOwnDocument()
        // The session logs in the user of the token, which may be another one.
        guard hadSession || stale != nil,
            accounts.token.map({ userID.hasSameBytes(as: $0.userID) }) ?? true, let key = ownKey
        else { return }
        _ = keepsOwnDocument(key)
    }

    /// The login has ended, or there is none: the document is waited for no longer than a moment.
    mutating func ownDocumentWaits(_ now: Instant) {
        guard connection != nil, !isLoginPending else { return }
        own.due = now + DDPOwnDocument.delay
    }

    /// A document has come.
    /// - Returns: whether it is the user's own and needs nothing else.
    mutating func receivedOwnDocument(
        _ key: DocumentKey, _ message: DDPDocumentMessage
    ) -> Bool {
        guard key.collection == DDPOwnDocument.collection else { return false }
        let isKept = key == own.kept
        switch message.change {
        case .removed: return isKept || keepsOwnDocument(key)
        case .movedBefore: return false
        case .added, .addedBefore, .changed: break
        }
        guard isKept else { return false }
        own.kept = nil
        _ = confirm(key)
        // Replaced also if the other documents are about to be removed: this one may be kept again.
        if quiescence.isResetting, stubs.contains(key) { return false }
        replaceDocument(key, message)
        return true
    }

    /// Nothing is waited for any more.
    mutating func endOwnDocument(_ now: Instant) {
        guard let due = own.due, due <= now else { return }
        // It may be among the messages that are held back.
        guard !quiescence.isWaiting else { return own.due = now + DDPOwnDocument.delay }
        own.due = nil
        // Then the time begins anew at its end.
        guard !isLoginPending else { return }
        dropOwnDocument(now)
    }

    /// The user's own document, if it is kept, is not the server's any more.
    mutating func dropOwnDocument(_ now: Instant) {
        guard let key = own.kept else { return }
        own = DDPOwnDocument()
        removeAsServer(key)
        flushAtOnce(now)
    }
}
