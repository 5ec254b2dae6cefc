/// A value of EJSON survives writing and parsing, in both of its texts. As an id, and where the
/// input is an id on the wire, it stays the same id.
func fuzzEJSON(_ input: consuming Input) {
    let bytes = input.rest
    checkID(String(decoding: bytes, as: UTF8.self))
    guard let value = try? EJSON(parsing: bytes) else { return }
    let text = value.text
    let again = read(text)
    require(again.equals(value, keyOrder: true), "the written text has another value: \(text)")
    require(again.text == text, "another text is written: \(text)")
    let canonical = value.canonicalText
    require(read(canonical) == value, "the canonical text has another value: \(canonical)")
    require(read(canonical).canonicalText == canonical, "a canonical text is not: \(canonical)")
    if let id = DocumentID(value) {
        require(id.value == value, "the id \(id.wire) has another value")
        require(DocumentID(wire: id.wire) == id, "the id \(id.wire) changes on its way")
    }
}

/// A query: its selector, its options and the documents of a collection, a line each. A live query
/// has the same result as a new one after every change, and `$nor` selects all other documents.
func fuzzSelector(_ input: consuming Input) {
    let lines = lines(input.rest)
    guard lines.count > 2, let selector = lines[0], let options = lines[1],
        let query = try? Query(selector: selector, options: options)
    else { return }
    let documents = lines.dropFirst(2).map { value in
        if case .object(let fields) = value { fields } else { EJSONObject() }
    }
    checkOpposite(of: selector, documents)
    var store = DocumentStore()
    store.declare("c")
    guard let list = try? store.observe(query, in: "c") else { fatalError("no query") }
    var found = list.found
    func apply(_ update: DocumentUpdate, _ number: Int) {
        let key = DocumentKey(collection: "c", id: id(number))
        require(store.buffer(update, for: key), "the buffer is full")
        for step in store.flush()?.live.first?.changes ?? [] { found.apply(step) }
        require(found == (try? store.find(query, in: "c")), "the live query has another result")
    }
    for (number, fields) in documents.enumerated() { apply(.added(fields), number) }
    // Each takes the place of the one before it.
    for (number, fields) in documents.dropFirst().enumerated() { apply(.replaced(fields), number) }
    for number in documents.indices { apply(.removed, number) }
    require(found.isEmpty, "documents that are gone")
}

/// A modifier and the document that it changes, a line each. The changed document can be written
/// and read, and its fields that differ, sent as a change, lead to it.
func fuzzModifier(_ input: consuming Input) {
    let lines = lines(input.rest)
    guard lines.count == 2, let value = lines[0], case .object(let given)? = lines[1],
        let modifier = try? Modifier(value, now: 1_700_000_000_000)
    else { return }
    let key = DocumentKey(collection: "c", id: id(0))
    var store = DocumentStore()
    require(store.buffer(.added(given), for: key), "the buffer is full")
    _ = store.flush()
    guard let fields = store.document(key) else { fatalError("the document is not there") }
    guard let changed = try? modifier.apply(to: fields, id: key.id) else { return }
    require(changed["_id"] == nil, "the changed document has an _id")
    let text = EJSON.object(changed).text
    require(read(text) == .object(changed), "the changed document cannot be read: \(text)")
    let changes = FieldChanges(from: fields, to: changed)
    require(changes.isEmpty == (fields == changed), "no changes, or some between equal documents")
    let update = DocumentUpdate.changed(fields: changes.fields, cleared: changes.cleared)
    require(store.buffer(update, for: key), "the buffer is full")
    _ = store.flush()
    require(store.document(key) == changed, "the changes lead to another document")
}

/// The values of the lines; nil for those that are not EJSON.
private func lines(_ text: UnsafeRawBufferPointer) -> [EJSON?] {
    text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).prefix(12).map {
        try? EJSON(parsing: UnsafeRawBufferPointer(rebasing: $0))
    }
}

/// A text that was written. It can be twice as deep as the one that was read: an object that looks
/// like a special one is written inside another.
private func read(_ text: String) -> EJSON {
    guard let value = try? EJSON(parsing: text, maximumDepth: 512) else {
        fatalError("the written text cannot be read: \(text)")
    }
    return value
}

private func checkID(_ wire: String) {
    guard let id = DocumentID(wire: wire), let value = id.value else { return }
    require(DocumentID(value) == id, "the id \(wire) is another one as \(id.wire)")
}

private func id(_ number: Int) -> DocumentID {
    guard let id = DocumentID(.number(Double(number))) else { fatalError("not an id: \(number)") }
    return id
}

private func checkOpposite(of selector: EJSON, _ documents: [EJSONObject]) {
    // Where `_id` is null, a whole selector matches nothing, but a part of one has its usual
    // meaning.
    guard case .object(let conditions) = selector, conditions["_id"] == nil else { return }
    var nor = EJSONObject()
    nor.append("$nor", .array([selector]))
    guard let direct = try? Selector(selector), let opposite = try? Selector(.object(nor)) else {
        return
    }
    for (number, fields) in documents.enumerated() {
        require(
            direct.matches(fields, id: id(number)) != opposite.matches(fields, id: id(number)),
            "$nor does not select the other documents")
    }
}

extension [Found] {
    /// Takes a step of a live query.
    mutating func apply(_ step: ListChange) {
        switch step {
        case .added(let id, let fields, let before):
            insert(Found(id: id, fields: fields), at: position(before))
        case .moved(let id, let before):
            let document = remove(at: position(id))
            insert(document, at: position(before))
        case .removed(let id): remove(at: position(id))
        case .changed(let id, let changes, let cleared):
            let position = position(id)
            var fields = self[position].fields
            for name in cleared { fields[name] = nil }
            for field in changes.fields { fields[field.name] = field.value }
            self[position] = Found(id: id, fields: fields)
        }
    }

    private func position(_ id: DocumentID?) -> Int {
        guard let id else { return count }
        guard let position = firstIndex(where: { $0.id == id }) else {
            fatalError("a step names \(id.wire), which is not in the list")
        }
        return position
    }
}
