import Wire

/// What a selector requires of a document.
indirect enum DocumentTest: Sendable {
    case field(FieldPath, ValueTest)
    case and([DocumentTest])
    case or([DocumentTest])
    case nor([DocumentTest])

    /// - Parameter id: the document's id, which its fields do not contain.
    func matches(_ fields: EJSONObject, id: DocumentID) -> Bool {
        switch self {
        case .field(let path, let test): test.matches(path, in: fields, id: id)
        case .and(let tests): tests.allSatisfy { $0.matches(fields, id: id) }
        case .or(let tests): tests.contains { $0.matches(fields, id: id) }
        case .nor(let tests): !tests.contains { $0.matches(fields, id: id) }
        }
    }

    /// Tests an array element, which is an object or an array.
    func matches(_ value: EJSON) -> Bool {
        switch self {
        case .field(let path, let test): test.matches(path, in: value)
        case .and(let tests): tests.allSatisfy { $0.matches(value) }
        case .or(let tests): tests.contains { $0.matches(value) }
        case .nor(let tests): !tests.contains { $0.matches(value) }
        }
    }
}

/// Selects elements of an array, for `$elemMatch` and `$pull`.
enum ElementSelector: Sendable {
    /// The operand's operators, for the element itself.
    case value(ValueTest)
    /// A selector for elements that are objects or arrays.
    case document(DocumentTest)

    func matches(_ element: EJSON) -> Bool {
        switch (self, element) {
        case (.value(let test), _): test.matches(element: element)
        case (.document(let test), .object), (.document(let test), .array): test.matches(element)
        case (.document, _): false
        }
    }
}
