import Documents
import Wire

extension Replay {
    mutating func runMinimongo(_ root: JSONNode) throws(RealtimeError) {
        let now = root.member("now")?.integer ?? 0
        var fixtures: [(name: String, documents: [Found])] = []
        if let members = root.member("fixtures")?.members {
            for member in members {
                fixtures.append((member.name.string ?? "", try found(member.value)))
            }
        }
        if let tests = root.list("queries") {
            for test in tests {
                let name = test.member("docs")?.string ?? ""
                guard let fixture = fixtures.first(where: { $0.name == name }) else {
                    throw RealtimeError(.invalidArgument, "the fixture \(name) is unknown")
                }
                try runQuery(test, fixture.documents)
            }
        }
        if let tests = root.list("modifiers") {
            for test in tests { try runModifier(test, now: now) }
        }
        if let tests = root.list("diffs") {
            for test in tests { try runDifference(test) }
        }
    }

    private mutating func runQuery(
        _ test: JSONNode, _ documents: [Found]
    ) throws(RealtimeError) {
        let selector = try test.value("selector") ?? .null
        let options = try test.value("options") ?? .null
        let query = try? Query(selector: selector, options: options)
        let results = try query?.results(of: documents.map { ($0.id, $0.fields) })
        if let ids = try test.value("ids") {
            compare("queries", test, ids, results.map { .array($0.map { $0.id.value ?? .null }) })
        } else {
            let withIDs = query?.includesID ?? true
            compare(
                "queries", test, try test.value("result"),
                results.map { .array($0.map { $0.document(withID: withIDs) }) })
        }
    }

    private mutating func runModifier(_ test: JSONNode, now: Int64) throws(RealtimeError) {
        guard let document = test.member("doc"), let modifier = try test.value("modifier") else {
            return
        }
        let before = try Found(document)
        let changed = try? Modifier(modifier, now: now).apply(to: before.fields, id: before.id)
        compare(
            "modifiers", test, try test.value("result"),
            changed.map { Found(id: before.id, fields: $0).document(withID: true) })
    }

    private mutating func runDifference(_ test: JSONNode) throws(RealtimeError) {
        guard let old = test.member("old"), let new = test.member("new") else { return }
        let changes = listChanges(from: try found(old), to: try found(new))
        var expected: [EJSON] = []
        for event in test.list("expect") ?? test.elements {
            expected.append(sortingCleared(try EJSON(event)))
        }
        compare("diffs", test, .array(expected), .array(changes.map { sortingCleared($0.event) }))
    }

    private func found(_ documents: JSONNode) throws(RealtimeError) -> [Found] {
        var found: [Found] = []
        for document in documents.elements { found.append(try Found(document)) }
        return found
    }

    /// The order of cleared fields does not matter.
    private func sortingCleared(_ event: EJSON) -> EJSON {
        guard case .object(var event) = event, case .array(let names)? = event["cleared"] else {
            return event
        }
        event["cleared"] = .array(names.sorted { EJSON.order($0, $1) < 0 })
        return .object(event)
    }
}

extension Found {
    fileprivate init(_ document: JSONNode) throws(RealtimeError) {
        var fields = try EJSONObject(document)
        guard let id = fields["_id"].flatMap({ DocumentID($0) }) else {
            throw RealtimeError(.invalidArgument, "a document has no id")
        }
        fields["_id"] = nil
        self.init(id: id, fields: fields)
    }

    fileprivate func document(withID: Bool) -> EJSON {
        var document = fields
        if withID { document["_id"] = id.value }
        return .object(document)
    }
}

extension ListChange {
    /// The event as the files describe it.
    fileprivate var event: EJSON {
        var event = EJSONObject()
        func set(_ name: String, _ id: DocumentID) {
            event["ev"] = .string(name)
            event["id"] = .string(id.wire)
        }
        func place(_ id: DocumentID?) { event["before"] = id.map { .string($0.wire) } ?? .null }
        switch self {
        case .added(let id, let fields, let before):
            set("added", id)
            event["fields"] = .object(fields)
            place(before)
        case .changed(let id, let fields, let cleared):
            set("changed", id)
            event["fields"] = .object(fields)
            if !cleared.isEmpty { event["cleared"] = .array(cleared.map { .string($0) }) }
        case .moved(let id, let before):
            set("moved", id)
            place(before)
        case .removed(let id):
            set("removed", id)
        }
        return .object(event)
    }
}
