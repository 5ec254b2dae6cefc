package import Wire

extension EJSONObject {
    /// Checks a document that is to be inserted, as Meteor does.
    /// - Throws: `.invalidArgument` if a field, at any level, has a name that MongoDB does not
    ///   store, if there are too many levels, or if the `_id` is neither a text of at least one
    ///   character nor an ObjectID. There may be no `_id`.
    package func checkInsertable() throws(RealtimeError) {
        switch self["_id"] {
        case nil, .objectID: break
        case .string(let text) where !text.isEmpty: break
        default:
            throw RealtimeError(
                .invalidArgument,
                "invalid document: its _id must be a text that is not empty, or an ObjectID")
        }
        if let fault = EJSON.object(self).storageFault() {
            throw RealtimeError(.invalidArgument, "invalid document: \(fault)")
        }
    }
}

extension EJSON {
    /// - Throws: `.invalidArgument` if a field, at any level, has a name that MongoDB does not
    ///   store, or if there are too many levels.
    func checkFieldNames() throws(RealtimeError) {
        if let fault = storageFault() { throw .modifier(fault) }
    }

    /// Why MongoDB does not store the value; nil if it does.
    fileprivate func storageFault(levels: Int = Modifier.maximumDepth) -> String? {
        guard levels > 0 else { return "a value has more than \(Modifier.maximumDepth) levels" }
        switch self {
        case .object(let object):
            for field in object.fields {
                let name = field.name.utf8
                guard !field.name.isOperatorName, !name.contains(UInt8(ascii: ".")),
                    !name.contains(0)
                else { return "the field name \(field.name) begins with $ or contains . or NUL" }
                if let fault = field.value.storageFault(levels: levels - 1) { return fault }
            }
        case .array(let elements):
            for element in elements {
                if let fault = element.storageFault(levels: levels - 1) { return fault }
            }
        case .null, .bool, .number, .string, .date, .bytes, .objectID, .decimal, .pattern,
            .custom:
            break
        }
        return nil
    }
}
