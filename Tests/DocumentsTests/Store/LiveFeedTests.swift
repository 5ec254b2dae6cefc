import DocumentsReplayer
import Testing
import Wire

@testable import Documents

/// What waits for a reader, against lists that are compared as a whole.
struct LiveFeedTests {
    // MARK: Lists

    private static func found(_ id: Int, _ version: Int = 0) -> Found {
        Found(id: DocumentID("\(id)"), fields: ["version": .number(Double(version)), "same": "x"])
    }

    /// Documents 0, 1, 2 and so on, with these ids.
    private static func list(_ ids: Int...) -> [Found] { ids.map { found($0) } }

    private static func entries(_ list: [Found]) -> [LiveEntry] {
        list.map { LiveEntry(id: $0.id, fields: $0.fields, key: nil, rank: 0) }
    }

    private static func change(from old: [Found], to new: [Found]) -> LiveChange {
        let entries = entries(new)
        let difference = ListDifference(
            from: LiveFeedTests.entries(old), to: entries,
            affected: new.map { AffectedEntry(id: $0.id) })
        return LiveChange(
            query: LiveQueryID(number: 1), steps: difference.allSteps(.entries(entries)))
    }

    /// A feed that has been given these results, one after the other. Its reader knows the first.
    private static func feed(_ first: [Found], _ others: [Found]...) -> LiveFeed {
        var feed = LiveFeed()
        feed.append(change(from: [], to: first))
        _ = feed.take()
        var last = first
        for list in others {
            feed.append(change(from: last, to: list))
            last = list
        }
        return feed
    }

    /// A list after some random changes.
    private static func changed(_ old: [Found], _ random: inout SeededNumbers) -> [Found] {
        var list = old
        for _ in 0..<Int.random(in: 0..<5, using: &random) {
            let position = list.indices.randomElement(using: &random)
            switch (Int.random(in: 0..<4, using: &random), position) {
            case (0, _):
                let new = found(Int.random(in: 0..<14, using: &random), 7)
                guard !list.contains(where: { $0.id == new.id }) else { continue }
                list.insert(new, at: Int.random(in: 0...list.count, using: &random))
            case (1, let position?): list.remove(at: position)
            case (2, let position?):
                let entry = list.remove(at: position)
                list.insert(entry, at: Int.random(in: 0...list.count, using: &random))
            case (_, let position?):
                let version = Int.random(in: 0..<3, using: &random)
                list[position] = Found(
                    id: list[position].id,
                    fields: ["version": .number(Double(version)), "same": "x"])
            case (_, nil): break
            }
        }
        return list
    }

    // MARK: Readers

    /// Applies a batch by its positions.
    private static func apply(_ batch: LiveBatch, to old: [Found]) -> [Found] {
        var list = old
        let leaving = batch.steps.filter { $0.newIndex == nil || $0.isMoved }
            .compactMap { $0.oldIndex }
        for index in leaving.sorted().reversed() { list.remove(at: index) }
        for step in batch.steps where step.oldIndex == nil || step.isMoved {
            guard let new = step.newIndex else { continue }
            list.insert(step.oldIndex.map { old[$0] } ?? step.found, at: new)
        }
        for step in batch.steps where step.isUpdated {
            if let new = step.newIndex { list[new] = step.found }
        }
        return list
    }

    /// Checks a batch against the two results between which it is the difference.
    private static func check(_ batch: LiveBatch, from old: [Found], to new: [Found]) {
        #expect(batch.count == new.count)
        #expect(batch.steps.listChanges == listChanges(from: old, to: new))
        #expect(apply(batch, to: old) == new)
        var applied = old
        applied.apply(batch.steps)
        #expect(applied == new)
        #expect(Set(batch.steps.map { $0.id }).count == batch.steps.count)
        for step in batch.steps { #expect(isRight(step, old, new), "\(step.id.wire)") }
    }

    /// Whether positions and documents are those of the two results.
    private static func isRight(_ step: LiveStep, _ old: [Found], _ new: [Found]) -> Bool {
        let before = step.oldIndex.map { old[$0] }
        let after = step.newIndex.map { new[$0] }
        guard before.map({ $0.id == step.id }) ?? true, after.map({ $0.id == step.id }) ?? true
        else { return false }
        let isKept = before != nil && after != nil
        guard isKept == (step.isMoved || step.isUpdated) else { return false }
        // Nothing was read of a document that has only moved.
        guard !isKept || step.isUpdated else { return step.old == nil && step.new == nil }
        return step.old == before?.fields && step.new == after?.fields
    }

    // MARK: Against the difference of whole lists

    /// However the reader falls behind, each batch is the difference between the result that it
    /// knows and the present one.
    private func read(seed: UInt64, changes: Int, takes: Int) {
        var random = SeededNumbers(seed: seed)
        var (feed, now, known) = (LiveFeed(), [Found](), [Found]())
        now = LiveFeedTests.changed([], &random)
        feed.append(LiveFeedTests.change(from: [], to: now))
        var isInitial = true
        for number in 1...changes {
            let old = now
            now = LiveFeedTests.changed(old, &random)
            if now != old { feed.append(LiveFeedTests.change(from: old, to: now)) }
            guard number == changes || Int.random(in: 0..<takes, using: &random) == 0 else {
                continue
            }
            let batch = feed.take()
            #expect((batch == nil) == (known == now && !isInitial))
            let nothing = feed.take()
            #expect(!feed.isFilled && nothing == nil)
            guard let batch else { continue }
            #expect(batch.isInitial == isInitial)
            LiveFeedTests.check(batch, from: known, to: now)
            (known, isInitial) = (now, false)
        }
    }

    @Test func oneReaderMissesNothing() { read(seed: 1, changes: 6_000, takes: 40) }

    @Test(arguments: 0..<300) func readersMissNothing(_ seed: UInt64) {
        read(seed: seed, changes: 60, takes: [1, 3, 12][Int(seed % 3)])
    }

    /// A reader of a real live query, in each form of its options.
    @Test(arguments: [
        "{}", #"{"sort":{"n":1}}"#, #"{"sort":{"n":-1},"skip":2,"limit":6}"#,
        #"{"limit":4,"fields":{"n":1}}"#,
    ]) func readersOfQueriesMissNothing(_ options: String) throws {
        var random = SeededNumbers(seed: 5)
        var store = DocumentStore()
        let query = try query("{}", options)
        let (id, found) = try store.observe(query, in: "p")
        var (feed, known) = (LiveFeed(), found)
        feed.append(LiveChange(beginning: id, found))
        _ = feed.take()
        for _ in 0..<600 {
            for _ in 0..<Int.random(in: 1..<6, using: &random) {
                let key = DocumentKey("p", "\(Int.random(in: 0..<20, using: &random))")
                let number = Double(Int.random(in: 0..<9, using: &random))
                let update: DocumentUpdate =
                    Int.random(in: 0..<4, using: &random) == 0
                    ? .removed : .added(["n": .number(number), "t": .number(number)])
                _ = store.buffer(update, for: key)
            }
            for change in store.flush()?.live ?? [] { feed.append(change) }
            guard Int.random(in: 0..<5, using: &random) == 0 else { continue }
            let now = try store.find(query, in: "p")
            if let batch = feed.take() {
                LiveFeedTests.check(batch, from: known, to: now)
            } else {
                #expect(known == now)
            }
            known = now
        }
    }

    // MARK: Rules

    @Test func theFirstBatchIsTheResultAlsoIfItIsEmpty() {
        var feed = LiveFeed()
        var batch = feed.take()
        #expect(batch == nil && !feed.isFilled)
        feed.append(LiveChange(beginning: LiveQueryID(number: 1), []))
        #expect(feed.isFilled)
        batch = feed.take()
        #expect(batch?.isInitial == true && batch?.steps.isEmpty == true && batch?.count == 0)
        batch = feed.take()
        #expect(batch == nil)
    }

    /// A reader that comes late gets the present result at first, without what was before.
    @Test func changesBeforeTheFirstBatchArePartOfIt() {
        var feed = LiveFeed()
        let (first, second) = (LiveFeedTests.list(1, 2), LiveFeedTests.list(3, 1))
        feed.append(LiveChange(beginning: LiveQueryID(number: 1), first))
        feed.append(LiveFeedTests.change(from: first, to: second))
        let batch = feed.take()
        #expect(batch?.isInitial == true)
        #expect(batch?.steps.map { $0.newIndex } == [0, 1])
        #expect(batch?.steps.allSatisfy { $0.oldIndex == nil && $0.new != nil } == true)
    }

    @Test func whatIsAsItWasIsNoChange() {
        let first = LiveFeedTests.list(1, 2, 3)
        let others = [
            [first[0], LiveFeedTests.found(2, 1), first[2]], LiveFeedTests.list(1, 3, 2),
            LiveFeedTests.list(1, 3), LiveFeedTests.list(1, 2, 3, 4),
        ]
        for other in others {
            var feed = LiveFeedTests.feed(first, other, first)
            #expect(feed.isFilled)
            let batch = feed.take()
            #expect(batch == nil && !feed.isFilled)
        }
    }

    /// A document that was gone meanwhile is one that has changed, if it has.
    @Test func aDocumentThatIsBackIsNotNew() throws {
        var last = LiveFeedTests.list(1, 2, 3)
        last[1] = LiveFeedTests.found(2, 5)
        var feed = LiveFeedTests.feed(LiveFeedTests.list(1, 2, 3), LiveFeedTests.list(1, 3), last)
        let batch = feed.take()
        let steps = try #require(batch).steps
        #expect(steps.count == 1 && steps[0].isUpdated && !steps[0].isMoved)
        #expect(steps[0].changes.fields == ["version": 5] && steps[0].changes.cleared.isEmpty)
    }

    @Test func whatIsTouchedIsUpdated() throws {
        let list = LiveFeedTests.list(1, 2)
        var feed = LiveFeedTests.feed(list)
        var isTouched = feed.touch([DocumentID("9")])
        #expect(!isTouched && !feed.isFilled)
        let longer = LiveFeedTests.list(1, 2, 3)
        // Alone, and with other changes before and after it.
        for merges in [false, true] {
            if merges { feed.append(LiveFeedTests.change(from: list, to: longer)) }
            isTouched = feed.touch([DocumentID("2"), DocumentID("9")])
            if merges { feed.append(LiveFeedTests.change(from: longer, to: list)) }
            let batch = feed.take()
            let steps = try #require(batch).steps
            #expect(isTouched)
            #expect(steps.count == 1 && steps[0].isUpdated && steps[0].id == DocumentID("2"))
            #expect(steps[0].new == list[1].fields && steps[0].changes.isEmpty)
        }
        isTouched = feed.touch([DocumentID("2")])
        feed.append(LiveFeedTests.change(from: list, to: LiveFeedTests.list(1)))
        let batch = feed.take()
        let steps = try #require(batch).steps
        #expect(isTouched)
        #expect(steps.count == 1 && steps[0].newIndex == nil && !steps[0].isUpdated)
    }

    /// A reader that never comes does not cost memory for each change.
    @Test func whatWaitsIsLimited() throws {
        var list = (0..<10).map { LiveFeedTests.found($0) }
        let first = list
        var feed = LiveFeedTests.feed(first)
        var largest = (changes: 0, documents: 0)
        for number in 0..<20_000 {
            let old = list
            let id = number % 3 == 0 ? DocumentID("\(number + 10)") : list[number % 7].id
            list[number % 7] = Found(id: id, fields: ["version": .number(Double(number))])
            list.swapAt(number % 10, (number * 3) % 10)
            feed.append(LiveFeedTests.change(from: old, to: list))
            let waiting = feed.waiting
            largest = (
                max(largest.changes, waiting.changes), max(largest.documents, waiting.documents)
            )
        }
        #expect(largest.changes > 100 && largest.changes <= 1_025)
        #expect(largest.documents > 10 && largest.documents <= 20)
        let batch = feed.take()
        LiveFeedTests.check(try #require(batch), from: first, to: list)
        #expect(feed.waiting == (0, 0))
    }

    // MARK: Hidden documents

    /// Documents with some versions are hidden: the batch of the whole lists becomes one of the
    /// lists that the reader sees.
    @Test(arguments: 0..<300) func hiddenDocumentsLeaveABatchOfTheOthers(_ seed: UInt64) throws {
        var random = SeededNumbers(seed: seed)
        var old = (0..<Int.random(in: 0..<8, using: &random)).map { LiveFeedTests.found($0) }
        func isHidden(_ one: Found) -> Bool { one.fields["version"] == 1 }
        var feed = LiveFeedTests.feed(old)
        var hidden: [Int] = []
        for _ in 0..<6 {
            let new = LiveFeedTests.changed(old, &random)
            feed.append(LiveFeedTests.change(from: old, to: new))
            if let batch = feed.take() {
                let shown = batch.hiding(&hidden) { id in
                    new.contains { $0.id == id && isHidden($0) }
                }
                let (before, after) = (old.filter { !isHidden($0) }, new.filter { !isHidden($0) })
                #expect(hidden == new.indices.filter { isHidden(new[$0]) })
                #expect(shown.count == after.count)
                #expect(LiveFeedTests.apply(shown, to: before) == after)
                for step in shown.steps {
                    if let index = step.oldIndex { #expect(before[index].id == step.id) }
                    if let index = step.newIndex { #expect(after[index].id == step.id) }
                }
                let gone = shown.steps.prefix { $0.newIndex == nil }.compactMap { $0.oldIndex }
                #expect(gone == gone.sorted())
                #expect(gone.count == shown.steps.filter { $0.newIndex == nil }.count)
            }
            old = new
        }
    }
}

extension LiveStep {
    fileprivate var found: Found { Found(id: id, fields: new ?? [:]) }
}
