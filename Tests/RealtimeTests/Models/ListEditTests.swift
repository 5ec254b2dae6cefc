import Testing

@testable import Realtime

@Suite struct ListEditTests {
    private typealias Edit = ListEdit<Int>

    /// An entry of a list: its id and its version.
    private struct Entry: Equatable {
        let id: Int
        var version = 0
    }

    /// The edit that turns one list into another: entries that are not in the longest run of those
    /// that stay in order move.
    private static func edit(from old: [Entry], to new: [Entry]) -> Edit {
        var edit = Edit()
        let ids = new.map { $0.id }
        let before = old.map { $0.id }
        edit.deleted = before.indices.filter { !ids.contains(before[$0]) }.map {
            Edit.Place(index: $0, id: before[$0])
        }
        var last = -1
        for (index, entry) in new.enumerated() {
            guard let position = before.firstIndex(of: entry.id) else {
                edit.inserted.append(Edit.Place(index: index, id: entry.id))
                continue
            }
            let pair = Edit.Pair(old: position, new: index, id: entry.id)
            if position > last { last = position } else { edit.moved.append(pair) }
            if old[position] != entry { edit.updated.append(pair) }
        }
        return edit
    }

    /// A list after some random changes.
    private static func changed(_ old: [Entry], _ random: inout Numbers) -> [Entry] {
        var list = old
        for _ in 0..<random.below(5) {
            switch random.below(4) {
            case 0:
                let free = (0..<14).filter { id in !list.contains { $0.id == id } }
                guard let id = free.randomElement(using: &random) else { continue }
                list.insert(Entry(id: id), at: random.below(list.count + 1))
            case 1 where !list.isEmpty: list.remove(at: random.below(list.count))
            case 2 where !list.isEmpty:
                let entry = list.remove(at: random.below(list.count))
                list.insert(entry, at: random.below(list.count + 1))
            case 3 where !list.isEmpty: list[random.below(list.count)].version += 1
            default: break
            }
        }
        return list
    }

    /// Applies an edit as its rules say. New entries and versions come from the new list.
    private static func apply(_ edit: Edit, to old: [Entry], _ new: [Entry]) -> [Entry] {
        var list = old
        for index in (edit.deleted.map { $0.index } + edit.moved.map { $0.old }).sorted().reversed()
        {
            list.remove(at: index)
        }
        let added =
            edit.inserted.map { (index: $0.index, entry: new[$0.index]) }
            + edit.moved.map { (index: $0.new, entry: old[$0.old]) }
        for (index, entry) in added.sorted(by: { $0.index < $1.index }) {
            list.insert(entry, at: index)
        }
        for pair in edit.updated { list[pair.new] = new[pair.new] }
        return list
    }

    @Test func insertedAndDeletedVanish() {
        let lists = [[], [Entry(id: 1)], []]
        let edits = zip(lists, lists.dropFirst()).map { ListEditTests.edit(from: $0, to: $1) }
        #expect(edits[0].followed(by: edits[1]).isEmpty)
    }

    @Test func movesThatFollowEachOtherAreOne() {
        let lists = ["abc", "bca", "cab"].map { $0.utf8.map { Entry(id: Int($0)) } }
        let first = ListEditTests.edit(from: lists[0], to: lists[1])
        let second = ListEditTests.edit(from: lists[1], to: lists[2])
        let both = first.followed(by: second)
        #expect(ListEditTests.apply(both, to: lists[0], lists[2]) == lists[2])
        #expect(both.deleted.isEmpty && both.inserted.isEmpty && both.updated.isEmpty)
    }

    /// Random lists, each made from the one before: however their edits are merged, the result
    /// turns the first list into the last one.
    @Test(arguments: 0..<300) func mergedEditsAreOneEdit(_ seed: UInt64) {
        var random = Numbers(state: seed &* 0x9E37_79B9_7F4A_7C15 | 1)
        var lists: [[Entry]] = [(0..<random.below(8)).map { Entry(id: $0) }]
        for _ in 0..<random.below(7) + 1 {
            lists.append(ListEditTests.changed(lists[lists.count - 1], &random))
        }
        let edits = zip(lists, lists.dropFirst()).map { ListEditTests.edit(from: $0, to: $1) }
        let oneByOne = edits.reduce(Edit()) { $0.followed(by: $1) }
        for merged in [oneByOne, Edit.merged(edits[...])] {
            let last = lists[lists.count - 1]
            #expect(ListEditTests.apply(merged, to: lists[0], last) == last)
            #expect(merged.size <= 2 * (lists[0].count + last.count))
            #expect(merged.inserted.allSatisfy { last[$0.index].id == $0.id })
            #expect(merged.deleted.allSatisfy { lists[0][$0.index].id == $0.id })
            for pair in merged.moved + merged.updated {
                #expect(lists[0][pair.old].id == pair.id && last[pair.new].id == pair.id)
            }
        }
    }

    /// Entries with some versions are hidden: the edit of the whole lists becomes one of the lists
    /// that the reader sees.
    @Test(arguments: 0..<300) func hiddenEntriesLeaveAnEditOfTheOthers(_ seed: UInt64) {
        var random = Numbers(state: seed &* 0x9E37_79B9_7F4A_7C15 | 1)
        var lists: [[Entry]] = [(0..<random.below(8)).map { Entry(id: $0) }]
        for _ in 0..<6 { lists.append(ListEditTests.changed(lists[lists.count - 1], &random)) }
        func isHidden(_ entry: Entry) -> Bool { (entry.id + entry.version) % 3 == 1 }
        var hidden = lists[0].indices.filter { isHidden(lists[0][$0]) }
        for (old, new) in zip(lists, lists.dropFirst()) {
            let edit = ListEditTests.edit(from: old, to: new)
            let shown = edit.hiding(&hidden) { id in new.contains { $0.id == id && isHidden($0) } }
            #expect(hidden == new.indices.filter { isHidden(new[$0]) })
            let (before, after) = (old.filter { !isHidden($0) }, new.filter { !isHidden($0) })
            #expect(ListEditTests.apply(shown, to: before, after) == after)
            #expect(shown.deleted.allSatisfy { before[$0.index].id == $0.id })
            #expect(shown.inserted.allSatisfy { after[$0.index].id == $0.id })
            for pair in shown.moved + shown.updated {
                #expect(before[pair.old].id == pair.id && after[pair.new].id == pair.id)
            }
        }
    }

    /// A reader that never comes does not cost memory for each change.
    @Test func whatWaitsIsLimited() {
        var pending = PendingChanges<Edit>()
        var list = (0..<10).map { Entry(id: $0) }
        let first = list
        var largest = 0
        for number in 0..<20_000 {
            let old = list
            list[number % 7].version += 1
            list.swapAt(number % 10, (number * 3) % 10)
            pending.append(ListEditTests.edit(from: old, to: list))
            largest = max(largest, pending.count)
        }
        #expect(largest <= 1_025)
        let taken = pending.take()
        #expect(taken.map { ListEditTests.apply($0, to: first, list) } == list)
        #expect(pending.take() == nil && pending.isEmpty)
    }
}

/// Repeatable random numbers: xorshift.
private struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state
    }

    mutating func below(_ limit: Int) -> Int { Int(next() >> 1) % limit.magnitude.asInt }
}

extension UInt {
    fileprivate var asInt: Int { Swift.max(1, Int(self)) }
}
