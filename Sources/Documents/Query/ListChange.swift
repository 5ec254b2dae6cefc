package import Wire

/// A step from one list of documents to another: the observe order of a live query (M17).
package enum ListChange: Sendable, Equatable {
    /// - `before`: the id of the document that follows; nil at the end.
    case added(id: DocumentID, fields: EJSONObject, before: DocumentID?)
    /// - `fields`: the new and the changed fields.
    /// - `cleared`: the names of the fields that are gone.
    case changed(id: DocumentID, fields: EJSONObject, cleared: [String])
    case moved(id: DocumentID, before: DocumentID?)
    case removed(id: DocumentID)
}
