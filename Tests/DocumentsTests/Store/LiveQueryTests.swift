@testable import Documents
import DocumentsReplayer
import Testing
import Wire

struct LiveQueryTests {
    private func key(_ id: String) -> DocumentKey { DocumentKey("p", id) }

    private func fields(_ number: Int, _ text: String = "x") throws -> EJSONObject {
        try document(#"{"n":\#(number),"t":"\#(text)"}"#)
    }

    private func store(_ ids: [String]) throws -> DocumentStore {
        var store = DocumentStore()
        for (number, id) in ids.enumerated() {
            _ = store.buffer(.added(try fields(number)), for: key(id))
        }
        _ = store.flush()
        return store
    }

    private func set(_ number: Int) throws -> DocumentUpdate {
        .changed(fields: try document(#"{"n":\#(number)}"#), cleared: [])
    }

    // MARK: Limits

    @Test func aQueryThatTakesTooLongEnds() throws {
        func document(_ id: String) -> DocumentKey {
            DocumentKey(collection: "p", id: DocumentID(id))
        }
        var store = DocumentStore()
        func update(_ id: String, _ update: DocumentUpdate) {
            _ = store.buffer(update, for: document(id))
        }
        update("a", .added(["n": 1, "text": "aaaab"]))
        _ = store.flush()
        var expensive = try query(#"{"text":{"$regex":"b$"}}"#)
        expensive.maximumSteps = 0
        #expect(throws: RealtimeError.self) { try store.observe(expensive, in: "p") }
        #expect(throws: RealtimeError.self) { try store.find(expensive, in: "p") }
        expensive.maximumSteps = 100
        let ended = try store.observe(expensive, in: "p")
        #expect(ended.found.count == 1)
        let other = try store.observe(query(), in: "p")
        // Each text alone is cheap enough.
        let long = EJSON.string(String(repeating: "a", count: 40))
        update("b", .added(["text": "b"]))
        let live = store.flush()?.live.map { $0.query } ?? []
        #expect(live == [ended.id, other.id])
        for id in ["c", "d", "e"] {
            update(id, .added(["text": long]))
        }
        // The other query has all changes; this one reports nothing any more.
        let last = store.flush()
        #expect(last?.live.map { $0.query } == [other.id])
        #expect(last?.ended.map { $0.id } == [ended.id])
        #expect(last?.ended.first?.collection == "p")
        #expect(last?.ended.first?.error.code == .invalidArgument)
        update("a", .removed)
        let next = store.flush()
        #expect(next?.live.map { $0.query } == [other.id])
        #expect(next?.ended == [])
        store.stopObserving(ended.id)
    }

    /// Nobody waits for a live query, so it may take far less than a search.
    @Test func aLiveQueryMayTakeLessThanASearch() throws {
        var store = DocumentStore()
        let expensive = try query(#"{"text":{"$regex":"(x+x+)+y"}}"#)
        let live = try store.observe(expensive, in: "p")
        let text = EJSON.string(String(repeating: "x", count: 100_000))
        for number in 0..<20 {
            _ = store.buffer(.added(["text": text]), for: key("\(number)"))
        }
        let notification = store.flush()
        #expect(notification?.changes.count == 20)
        #expect(notification?.ended.map { $0.id } == [live.id])
        #expect(try store.find(expensive, in: "p").isEmpty)
    }

    // MARK: Observe order

    /// An example of the order by ids (M17).
    @Test func changesComeInObserveOrder() throws {
        var store = try store(["a", "b", "c", "d", "e"])
        let sorted = try query("{}", #"{"sort":{"n":1}}"#)
        let live = try store.observe(sorted, in: "p")
        #expect(live.found.map { $0.id.wire } == ["a", "b", "c", "d", "e"])
        _ = live.id
        let notification = try store.receive(
            (key("a"), set(9)), (key("b"), set(22)), (key("c"), set(0)), (key("d"), .removed),
            (key("e"), set(20)), (key("x"), .added(fields(10))))
        #expect(
            notification?.steps == [
                "-d", #"*c {"n":0}"#, ">c a", #"*a {"n":9}"#, "+x b", #"*e {"n":20}"#, ">e b",
                #"*b {"n":22}"#,
            ])
    }

    @Test func anUnsortedQueryIsInNaturalOrder() throws {
        var store = try store(["c", "a", "b"])
        _ = try store.observe(query(), in: "p")
        #expect(try store.receive((key("d"), .added(fields(3))))?.steps == ["+d"])
        #expect(try store.receive((key("a"), set(7)))?.steps == [#"*a {"n":7}"#])
        let notification = try store.receive((key("c"), .removed), (key("c"), .added(fields(0))))
        #expect(notification?.steps == [">c"])
        #expect(notification?.changes.isEmpty == true)
    }

    @Test func onlyMatchingDocumentsCount() throws {
        var store = try store(["a", "b", "c"])
        _ = try store.observe(query(#"{"n":{"$gte":1}}"#, #"{"sort":{"n":-1}}"#), in: "p")
        #expect(try store.receive((key("a"), .changed(fields: fields(0, "y"), cleared: []))) != nil)
        #expect(try store.receive((key("a"), set(5)))?.steps == [#"+a c"#])
        #expect(try store.receive((key("c"), set(0)))?.steps == ["-c"])
        #expect(store.receive((key("c"), .removed))?.live.isEmpty == true)
    }

    @Test func aProjectionHidesOtherFields() throws {
        var store = try store(["a"])
        let live = try store.observe(query("{}", #"{"fields":{"n":1}}"#), in: "p")
        #expect(try live.found.map { $0.fields } == [document(#"{"n":0}"#)])
        let hidden = try store.receive(
            (key("a"), .changed(fields: document(#"{"t":"y"}"#), cleared: [])))
        #expect(hidden?.changes.count == 1)
        #expect(hidden?.live.isEmpty == true)
        let shown = try store.receive(
            (key("a"), .changed(fields: document(#"{"t":"z","n":4}"#), cleared: [])))
        #expect(shown?.steps == [#"*a {"n":4}"#])
    }

    @Test func aClearedFieldIsNamed() throws {
        var store = try store(["a"])
        _ = try store.observe(query(), in: "p")
        let notification = try store.receive(
            (key("a"), .changed(fields: document(#"{"u":1}"#), cleared: ["t"])))
        #expect(notification?.steps == [#"*a {"u":1} -t"#])
    }

    @Test func skipAndLimitAreAWindow() throws {
        var store = try store(["a", "b", "c", "d"])
        let live = try store.observe(query("{}", #"{"sort":{"n":1},"skip":1,"limit":2}"#), in: "p")
        #expect(live.found.map { $0.id.wire } == ["b", "c"])
        #expect(store.receive((key("d"), .removed))?.live.isEmpty == true)
        #expect(store.receive((key("a"), .removed))?.steps == ["-b"])
        #expect(try store.receive((key("e"), .added(fields(9))))?.steps == ["+e"])
        #expect(try store.receive((key("f"), .added(fields(0))))?.steps == ["-e", "+b c"])
    }

    @Test func queriesReportInTheOrderOfTheirCreation() throws {
        var store = try store(["a"])
        let first = try store.observe(query(#"{"n":0}"#), in: "p").id
        let other = try store.observe(query(), in: "q").id
        let second = try store.observe(query(), in: "p").id
        #expect(store.receive((key("a"), .removed))?.live.map { $0.query } == [first, second])
        store.stopObserving(first)
        store.stopObserving(first)
        let notification = try store.receive(
            (key("a"), .added(fields(0))), (DocumentKey("q", "a"), .added(fields(0))))
        #expect(notification?.live.map { $0.query } == [other, second])
    }

    @Test func aQueryMadeInABatchBeginsBeforeIt() throws {
        var store = try store(["a", "b"])
        store.beginBatch()
        _ = store.remove(key("a"))
        _ = try store.insert(key("c"), fields(2))
        let live = try store.observe(query(), in: "p")
        #expect(live.found.map { $0.id.wire } == ["a", "b"])
        #expect(store.endBatch()?.steps == ["-a", "+c"])
    }

    @Test func aQueryByIDLooksAtNothingElse() throws {
        var store = try store(["a", "b", "c"])
        let live = try store.observe(query(#"{"_id":{"$in":["c","a","none"]}}"#), in: "p")
        #expect(live.found.map { $0.id.wire } == ["a", "c"])
        #expect(store.receive((key("b"), .removed))?.live.isEmpty == true)
        #expect(store.receive((key("c"), .removed))?.steps == ["-c"])
    }

    // MARK: Placing

    @Test func placedDocumentsMoveInNaturalOrder() throws {
        var store = try store(["a", "b", "c"])
        _ = try store.observe(query(), in: "p")
        let b = DocumentID("b")
        let added = try store.receive((key("x"), .addedBefore(fields(3), before: b)))
        #expect(added?.steps == ["+x b"])
        #expect(store.ids("p") == ["a", "x", "b", "c"])
        let moved = store.receive((key("c"), .movedBefore(EJSONObject(), before: DocumentID("a"))))
        #expect(moved?.steps == [">c a"])
        #expect(moved?.changes.isEmpty == true)
        #expect(store.ids("p") == ["c", "a", "x", "b"])
        _ = store.receive(
            (key("a"), .movedBefore(EJSONObject(), before: nil)),
            (key("x"), .movedBefore(EJSONObject(), before: DocumentID("gone"))),
            (key("none"), .movedBefore(EJSONObject(), before: b)))
        #expect(store.ids("p") == ["c", "b", "a", "x"])
        _ = try store.receive((key("y"), .addedBefore(fields(4), before: DocumentID("y"))))
        #expect(store.ids("p") == ["c", "b", "a", "x", "y"])
    }

    @Test func documentsFindRoomBeforeTheSameOne() throws {
        var store = try store(["a", "b"])
        _ = try store.observe(query(), in: "p")
        var expected = ["a"]
        for number in 0..<200 {
            let notification = try store.receive(
                (key("\(number)"), .addedBefore(fields(number), before: DocumentID("b"))))
            #expect(notification?.steps == ["+\(number) b"])
            expected.append("\(number)")
        }
        #expect(store.ids("p") == expected + ["b"])
        #expect(try store.receive((key("z"), .added(fields(0))))?.steps == ["+z"])
        #expect(store.ids("p") == expected + ["b", "z"])
    }

    // MARK: Index form

    @Test func changesByIndexDescribeTheSame() throws {
        var store = try store(["a", "b", "c", "d", "e"])
        let (id, found) = try store.observe(query("{}", #"{"sort":{"n":1}}"#), in: "p")
        var feed = LiveFeed()
        feed.append(LiveChange(beginning: id, found))
        #expect(feed.takeIndexes()?.changes.inserted == [0, 1, 2, 3, 4])
        let notification = try store.receive(
            (key("a"), set(9)), (key("b"), set(22)), (key("c"), set(0)), (key("d"), .removed),
            (key("e"), set(20)), (key("x"), .added(fields(10))))
        feed.append(try #require(notification?.live.first))
        let taken = feed.takeIndexes()
        let indexes = try #require(taken?.changes)
        #expect(taken?.isInitial == false)
        #expect(indexes.deleted == [3])
        #expect(indexes.inserted == [2])
        #expect(indexes.moved == [.init(old: 2, new: 0), .init(old: 4, new: 3)])
        #expect(
            indexes.updated == [
                .init(old: 2, new: 0), .init(old: 0, new: 1), .init(old: 4, new: 3),
                .init(old: 1, new: 4),
            ])
        #expect(indexes.ids.map { $0.wire } == ["c", "a", "x", "e", "b"])
    }

    // MARK: Against the plain rule

    private static let options = [
        "{}", #"{"sort":{"n":1}}"#, #"{"sort":{"n":-1,"t":1}}"#, #"{"sort":{"n":1},"limit":9}"#,
        #"{"sort":{"t":1},"skip":2,"limit":6}"#, #"{"skip":3}"#, #"{"limit":4,"fields":{"n":1}}"#,
    ]

    @Test(arguments: [(0, 12, 3), (1, 12, 30), (2, 400, 2), (3, 400, 60), (4, 1_500, 5)])
    func changesAreThoseOfTheWholeLists(seed: Int, documents: Int, updates: Int) throws {
        var random = SeededNumbers(seed: UInt64(seed))
        var store = DocumentStore()
        var live: [(id: LiveQueryID, query: Query, found: [Found])] = []
        for options in LiveQueryTests.options {
            for selector in ["{}", #"{"n":{"$lt":50}}"#] {
                let query = try query(selector, options)
                let (id, found) = try store.observe(query, in: "p")
                live.append((id, query, found))
            }
        }
        for round in 0..<40 {
            for _ in 0..<(round == 0 ? documents : updates) {
                let update = try update(documents, &random)
                _ = store.buffer(update.1, for: update.0)
            }
            let isEmptying = round % 13 == 12
            let notification =
                round % 3 == 0
                ? store.flush(
                    emptying: isEmptying, inPartsOf: Int.random(in: 1..<90, using: &random))
                : store.flush(emptying: isEmptying)
            for index in live.indices {
                let found = try store.find(live[index].query, in: "p")
                let report = notification?.live.first { $0.query == live[index].id }
                #expect(report?.changes ?? [] == listChanges(from: live[index].found, to: found))
                let before = live[index].found.map { $0.id }
                if let report {
                    let indexes = IndexChanges(report.steps, ids: found.map { $0.id })
                    #expect(apply(indexes, to: before) == found.map { $0.id })
                }
                live[index].found = found
            }
        }
        #expect(store.count(of: "p") > 0)
    }

    private func update(
        _ documents: Int, _ random: inout SeededNumbers
    ) throws -> (DocumentKey, DocumentUpdate) {
        let key = key("\(Int.random(in: 0..<documents, using: &random))")
        let number = Int.random(in: 0..<100, using: &random)
        let other = DocumentID("\(Int.random(in: 0..<documents, using: &random))")
        switch Int.random(in: 0..<10, using: &random) {
        case 0: return (key, .removed)
        case 1: return (key, .replaced(try fields(number)))
        case 2: return (key, .addedBefore(try fields(number), before: other))
        case 3: return (key, .movedBefore(EJSONObject(), before: other))
        case 4, 5: return (key, try set(number))
        default: return (key, .added(try fields(number, "\(number % 7)")))
        }
    }

    /// What a list view does with the changes.
    private func apply(_ changes: IndexChanges, to list: [DocumentID]) -> [DocumentID] {
        var result = list
        for index in (changes.deleted + changes.moved.map { $0.old }).sorted(by: >) {
            result.remove(at: index)
        }
        for index in (changes.inserted + changes.moved.map { $0.new }).sorted() {
            result.insert(changes.ids[index], at: index)
        }
        return result
    }
}
