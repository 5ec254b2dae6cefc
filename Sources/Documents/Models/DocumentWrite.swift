package import Wire

/// A change of one document.
package enum DocumentWrite: Sendable {
    /// A document, whose `_id` is drawn if it has none.
    case insert(String, EJSON)
    case update(String, id: EJSON, modifier: EJSON)
    case remove(String, id: EJSON)
}
