package import Wire

/// Names a document: its collection and its id. Compared byte for byte.
package struct DocumentKey: Hashable, Sendable {
    package let collection: String
    package let id: DocumentID

    package init(collection: String, id: DocumentID) {
        self.collection = collection
        self.id = id
    }

    package static func == (left: DocumentKey, right: DocumentKey) -> Bool {
        left.id == right.id && left.collection.hasSameBytes(as: right.collection)
    }

    package func hash(into hasher: inout Hasher) {
        id.hash(into: &hasher)
        var collection = collection
        collection.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

/// The ids that a collection gives to new documents.
package enum NewDocumentIDs: Sendable {
    /// 17 characters that are easy to read.
    case strings
    case objectIDs
}

/// What a server's message, or the end of a stub's simulation, does to one document.
///
/// A field named `_id` is ignored wherever it occurs: a document's id is part of its key.
package enum DocumentUpdate: Sendable {
    /// The document is new. If it is there already, the fields are set in it.
    case added(EJSONObject)
    /// Sets top-level fields and removes others. Makes the document if it is not there.
    case changed(fields: EJSONObject, cleared: [String])
    case removed
    /// The document is exactly this; nil removes it.
    case replaced(EJSONObject?)
    /// As `added`; the document is placed before another one, or at the end of the collection if
    /// `before` is nil or not there.
    indirect case addedBefore(EJSONObject, before: DocumentID?)
    /// Sets fields and places the document. Ignored if it is not there.
    indirect case movedBefore(EJSONObject, before: DocumentID?)
}

/// What a change set says about one document: how it was and how it is now. Never both nil, and
/// never equal.
package struct DocumentChange: Sendable {
    package let key: DocumentKey
    /// nil: the document is new.
    package private(set) var before: EJSONObject?
    /// nil: the document is gone.
    package private(set) var after: EJSONObject?

    package init(key: DocumentKey, before: EJSONObject?, after: EJSONObject?) {
        self.key = key
        self.before = before
        self.after = after
    }

    /// Drops the documents, once nobody needs them any more.
    package mutating func forget() { (before, after) = (nil, nil) }

    /// The top-level fields that are new or have another value now, and the names of those that are
    /// gone. A new document has all its fields changed, a removed one all of them cleared.
    package var details: FieldChanges {
        FieldChanges(from: before ?? EJSONObject(), to: after ?? EJSONObject())
    }
}
