import Wire

/// What a selector requires of a document.
indirect enum DocumentTest: Sendable {
    case field(FieldPath, ValueTest)
    case and([DocumentTest])
    case or([DocumentTest])
    case nor([DocumentTest])

    /// - Parameters:
    ///   - id: the document's id, which its fields do not contain.
    ///   - budget: if it is exceeded, the result means nothing.
    func matches(_ fields: EJSONObject, id: DocumentID, _ budget: inout MatchBudget) -> Bool {
        switch self {
        case .field(let path, let test): test.matches(path, in: fields, id: id, &budget)
        case .and(let tests): tests.allSatisfy { $0.matches(fields, id: id, &budget) }
        case .or(let tests): tests.contains { $0.matches(fields, id: id, &budget) }
        case .nor(let tests): !tests.contains { $0.matches(fields, id: id, &budget) }
        }
    }

    /// Tests an array element, which is an object or an array.
    func matches(_ value: EJSON, _ budget: inout MatchBudget) -> Bool {
        switch self {
        case .field(let path, let test): test.matches(path, in: value, &budget)
        case .and(let tests): tests.allSatisfy { $0.matches(value, &budget) }
        case .or(let tests): tests.contains { $0.matches(value, &budget) }
        case .nor(let tests): !tests.contains { $0.matches(value, &budget) }
        }
    }
}

extension DocumentTest {
    /// One test for all those that allow values of the same path: `$or` of many ids.
    /// - Parameter tests: of which one suffices.
    static func merging(_ tests: [DocumentTest]) -> [DocumentTest] {
        var groups: [(path: FieldPath, tests: [ElementTest])] = []
        var known = ByteTable<Int>()
        var merged: [DocumentTest] = []
        for test in tests {
            guard case .field(let path, .any(let element)) = test, element.isMember else {
                merged.append(test)
                continue
            }
            if let group = known[path.text] {
                groups[group].tests.append(element)
            } else {
                known[path.text] = groups.count
                groups.append((path, [element]))
            }
        }
        return merged + groups.map { .field($0.path, .any(.any(of: $0.tests))) }
    }
}

/// Selects elements of an array, for `$elemMatch` and `$pull`.
enum ElementSelector: Sendable {
    /// The operand's operators, for the element itself.
    case value(ValueTest)
    /// A selector for elements that are objects or arrays.
    case document(DocumentTest)

    func matches(_ element: EJSON, _ budget: inout MatchBudget) -> Bool {
        switch (self, element) {
        case (.value(let test), _): test.matches(element: element, &budget)
        case (.document(let test), .object), (.document(let test), .array):
            test.matches(element, &budget)
        case (.document, _): false
        }
    }
}
