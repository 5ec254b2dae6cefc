internal import Wire

/// A query whose result is kept up to date.
struct LiveQuery: Sendable {
    let id: LiveQueryID
    /// The collection's position.
    let collection: Int
    private let query: Query
    /// All documents that match.
    private var list: LiveList

    /// More changes than the list's count divided by this are merged into it in one pass.
    private static let manyChanges = 8

    /// - Parameter documents: those that may match.
    /// - Throws: `.invalidArgument` for a query that takes too long.
    init(
        id: LiveQueryID, collection: Int, query: Query, documents: [RankedDocument]
    ) throws(RealtimeError) {
        self.id = id
        self.collection = collection
        self.query = query
        var search = SearchBudget(steps: query.maximumSteps)
        let entries = documents.compactMap { query.entry($0.id, $0.fields, $0.rank, &search) }
        try search.check()
        list = LiveList(entries, order: LiveOrder(sort: query.sort))
    }

    /// The present result.
    var found: [Found] { shown.map { query.found($0) } }

    /// The part of the list that skip and limit leave.
    private var shown: [LiveEntry] {
        let start = min(query.skip, list.count)
        let count = min(query.limit ?? Int.max, list.count - start)
        return list.entries(start..<start + count)
    }

    /// A document that changed and was in the list, or is now.
    struct Affected: Sendable {
        let id: DocumentID
        /// nil: it was not in the list.
        var old: LiveEntry?
        /// nil: it is not in the list.
        var new: LiveEntry?
        /// Positions in the list as it was and as it is; -1 where it is not.
        var oldIndex = -1
        var newIndex = -1
        /// It counts as changed even if its fields are the same.
        var isTouched = false
    }

    /// - Returns: nil if the result stays as it was.
    /// - Throws: `.invalidArgument` if the query takes too long. Then it must be ended.
    mutating func apply(_ changes: [NetChange]) throws(RealtimeError) -> LiveChange? {
        var search = SearchBudget(steps: query.maximumSteps)
        var affected = changes.compactMap { affect($0, &search) }
        try search.check()
        guard !affected.isEmpty else { return nil }
        let oldShown = query.hasRange ? shown : []
        update(&affected)
        if query.hasRange {
            let newShown = shown
            let difference = ListDifference(from: oldShown, to: newShown, affected: affected)
            return report(difference, .entries(newShown))
        }
        return report(ListDifference(affected, count: list.count), .live(list))
    }

    /// - Parameter new: the new list.
    private func report(_ difference: ListDifference, _ new: EntryList) -> LiveChange? {
        let steps = difference.steps(new, query.projection)
        return steps.isEmpty ? nil : LiveChange(query: id, steps: steps)
    }

    private func affect(_ change: NetChange, _ search: inout SearchBudget) -> Affected? {
        let old = query.entry(change.id, change.before, change.rankBefore, &search)
        let new = query.entry(change.id, change.after, change.rankAfter, &search)
        guard old != nil || new != nil else { return nil }
        return Affected(id: change.id, old: old, new: new)
    }

    /// Changes the list, and finds the positions before and after.
    private mutating func update(_ affected: inout [Affected]) {
        if affected.count == 1 { return update(&affected[0]) }
        let isMany = affected.count > list.count / LiveQuery.manyChanges
        let numbers = isMany ? LiveQuery.numbers(of: affected) : [:]
        if isMany {
            for (index, entry) in list.entries(0..<list.count).enumerated() {
                if let number = numbers[entry.id] { affected[number].oldIndex = index }
            }
        } else {
            for number in affected.indices {
                guard let old = affected[number].old else { continue }
                affected[number].oldIndex = list.index(of: old) ?? -1
            }
        }
        let removed = affected.map { $0.oldIndex }.filter { $0 >= 0 }.sorted()
        let inserted = affected.compactMap { $0.new }
        guard !isMany else {
            list.replace(removed, with: inserted)
            for (index, entry) in list.entries(0..<list.count).enumerated() {
                if let number = numbers[entry.id] { affected[number].newIndex = index }
            }
            return
        }
        for index in removed.reversed() { list.remove(at: index) }
        for entry in inserted { list.insert(entry) }
        for number in affected.indices {
            guard let new = affected[number].new else { continue }
            affected[number].newIndex = list.index(of: new) ?? -1
        }
    }

    /// Changes the list by one document.
    private mutating func update(_ affected: inout Affected) {
        affected.oldIndex = affected.old.flatMap { list.index(of: $0) } ?? -1
        switch affected.new {
        case let new? where affected.oldIndex >= 0:
            affected.newIndex = list.replace(at: affected.oldIndex, with: new)
        case let new?: affected.newIndex = list.insert(new)
        case nil: if affected.oldIndex >= 0 { list.remove(at: affected.oldIndex) }
        }
    }

    private static func numbers(of affected: [Affected]) -> [DocumentID: Int] {
        var numbers: [DocumentID: Int] = [:]
        numbers.reserveCapacity(affected.count)
        for (number, document) in affected.enumerated() { numbers[document.id] = number }
        return numbers
    }
}

/// A document with its place in the natural order.
struct RankedDocument {
    let id: DocumentID
    let fields: EJSONObject
    let rank: Int64
}

extension Query {
    /// nil if the document does not match.
    func entry(
        _ id: DocumentID, _ fields: EJSONObject?, _ rank: Int64, _ search: inout SearchBudget
    ) -> LiveEntry? {
        guard let fields, selector.matches(fields, id: id, &search) else { return nil }
        return LiveEntry(id: id, fields: fields, key: sort?.key(of: fields, id: id), rank: rank)
    }

    func found(_ entry: LiveEntry) -> Found { Found(id: entry.id, fields: project(entry.fields)) }

    func project(_ fields: EJSONObject) -> EJSONObject { projection?.apply(fields) ?? fields }
}
