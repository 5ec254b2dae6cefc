internal import Wire

/// A query whose result is kept up to date.
struct LiveQuery: Sendable {
    let id: LiveQueryID
    /// The collection's position.
    let collection: Int
    private let query: Query
    /// All documents that match.
    private var list: LiveList

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

    /// What is done with the changes of one transaction.
    struct Work: Sendable {
        fileprivate var search: SearchBudget
        /// How many changes were looked at.
        fileprivate var seen = 0
        fileprivate var affected: [AffectedEntry] = []
        fileprivate var oldShown: [LiveEntry] = []
        fileprivate var update: LiveListUpdate?
        fileprivate var difference: ListDifference?
        /// The new result, if it is a part of the list.
        fileprivate var newShown: [LiveEntry] = []
    }

    private static let manyChanges = 16_384

    /// Applies a change that is the only one of its transaction, as most are.
    /// - Returns: nil if the result stays as it was.
    /// - Throws: as the other.
    mutating func apply(_ change: NetChange) throws(RealtimeError) -> LiveChange? {
        var search = SearchBudget(steps: min(query.maximumSteps, SearchBudget.live(1)))
        let old = query.entry(change.id, change.before, change.rankBefore, &search)
        let new = query.entry(change.id, change.after, change.rankAfter, &search)
        try search.check()
        guard old != nil || new != nil else { return nil }
        var affected = AffectedEntry(id: change.id, old: old, new: new)
        let oldShown = query.hasRange ? shown : []
        list.update(&affected)
        let steps: [LiveStep]
        if query.hasRange {
            let newShown = shown
            steps = ListDifference(from: oldShown, to: newShown, affected: [affected])
                .allSteps(.entries(newShown), query.projection)
        } else {
            let difference = ListDifference(
                [affected], old: affected.oldIndex < 0 ? [] : [0],
                new: affected.newIndex < 0 ? [] : [0], count: list.count)
            steps = difference.allSteps(.live(list), query.projection)
        }
        return steps.isEmpty ? nil : LiveChange(query: id, steps: steps)
    }

    /// How applying changes went.
    enum Outcome {
        /// Another call must continue.
        case unfinished
        /// nil: the result stays as it was.
        case finished(LiveChange?)
    }

    /// Begins to apply changes. Until `apply` has finished, the query is of no other use.
    func begin(_ changes: [NetChange]) -> Work {
        let steps = min(query.maximumSteps, SearchBudget.live(changes.count))
        return Work(search: SearchBudget(steps: steps))
    }

    /// - Throws: `.invalidArgument` if the query takes too long. Then it must be ended.
    mutating func apply(
        _ changes: [NetChange], _ work: inout Work, _ budget: inout StepBudget
    ) throws(RealtimeError) -> Outcome {
        if work.difference == nil {
            if work.update == nil {
                guard try findAffected(changes, &work, &budget) else { return .unfinished }
                guard !work.affected.isEmpty else { return .finished(nil) }
                if query.hasRange { work.oldShown = takeShown(&budget) }
                work.update = LiveListUpdate(exchange(&work.affected, with: []), of: list)
            }
            guard work.update?.run(&list, &budget) == true else { return .unfinished }
            guard let update = exchange(&work.update, with: nil) else { return .unfinished }
            if query.hasRange {
                work.newShown = takeShown(&budget)
                work.difference = ListDifference(
                    from: work.oldShown, to: work.newShown, affected: update.affected)
            } else {
                work.difference = ListDifference(
                    update.affected, old: update.old, new: update.new, count: list.count)
            }
        }
        let new = query.hasRange ? EntryList.entries(work.newShown) : .live(list)
        guard let steps = work.difference?.steps(new, query.projection, &budget) else {
            return .unfinished
        }
        return .finished(steps.isEmpty ? nil : LiveChange(query: id, steps: steps))
    }

    private func takeShown(_ budget: inout StepBudget) -> [LiveEntry] {
        let shown = shown
        budget.spend(shown.count)
        return shown
    }

    /// - Returns: whether all changes were looked at.
    private func findAffected(
        _ changes: [NetChange], _ work: inout Work, _ budget: inout StepBudget
    ) throws(RealtimeError) -> Bool {
        // Growing would copy many large elements; room that is not used takes no memory.
        if work.seen == 0, changes.count > LiveQuery.manyChanges {
            work.affected.reserveCapacity(changes.count)
        }
        while work.seen < changes.count {
            guard !budget.isSpent else { return false }
            let change = changes[work.seen]
            let old = query.entry(change.id, change.before, change.rankBefore, &work.search)
            let new = query.entry(change.id, change.after, change.rankAfter, &work.search)
            budget.spend(2 + work.search.takeUnits())
            try work.search.check()
            work.seen += 1
            guard old != nil || new != nil else { continue }
            work.affected.append(AffectedEntry(id: change.id, old: old, new: new))
        }
        return true
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
