import Testing
import Wire

@testable import Documents

/// The list of a live query against a plain sorted array.
struct LiveListTests {
    private func entry(_ number: Int, _ n: Int, _ sort: SortOrder?) throws -> LiveEntry {
        let id = DocumentID("id\(number)")
        // Long equal beginnings, so that prefixes alone do not decide.
        let text = String(repeating: "t", count: 20 + n % 3) + "\(n % 7)"
        let fields: EJSONObject = ["n": .number(Double(n % 50)), "t": .string(text)]
        return LiveEntry(
            id: id, fields: fields, key: sort?.key(of: fields, id: id), rank: Int64(number))
    }

    @Test(arguments: ["", #"{"n":1}"#, #"{"n":-1,"t":1}"#, #"{"t":-1,"n":1}"#])
    func isASortedArray(sort: String) throws {
        let sort = sort.isEmpty ? nil : try SortOrder(value(sort))
        let order = LiveOrder(sort: sort)
        var numbers = SeededNumbers(seed: 21)
        let first = try (0..<1_000).map {
            try entry($0, Int.random(in: 0..<200, using: &numbers), sort)
        }
        var model = first.sorted { order.precedes($0, $1) }
        var list = LiveList(first.shuffled(using: &numbers), order: order)
        var next = model.count
        /// Where an entry belongs.
        func position(_ entry: LiveEntry) -> Int {
            model.firstIndex { order.precedes(entry, $0) } ?? model.count
        }
        for step in 0..<4_000 {
            // The list grows, shrinks to nothing, and grows again.
            let isGrowing = step < 1_000 || step >= 3_200
            let isFull = Int.random(in: 0..<8, using: &numbers) > (isGrowing ? 1 : 6)
            if model.isEmpty || isFull {
                let entry = try entry(next, Int.random(in: 0..<200, using: &numbers), sort)
                next += 1
                let place = position(entry)
                model.insert(entry, at: place)
                #expect(list.insert(entry) == place)
            } else if Int.random(in: 0..<4, using: &numbers) == 0 {
                let place = Int.random(in: 0..<model.count, using: &numbers)
                let old = model.remove(at: place)
                let entry = LiveEntry(
                    id: old.id, fields: old.fields,
                    key: try self.entry(0, Int.random(in: 0..<200, using: &numbers), sort).key,
                    rank: old.rank)
                let target = position(entry)
                model.insert(entry, at: target)
                #expect(list.replace(at: place, with: entry) == target)
            } else {
                let place = Int.random(in: 0..<model.count, using: &numbers)
                #expect(list.index(of: model[place]) == place)
                model.remove(at: place)
                list.remove(at: place)
            }
            #expect(list.count == model.count)
            guard step % 200 == 0 || model.count < 3 else { continue }
            #expect(list.entries(0..<list.count).map { $0.id } == model.map { $0.id })
            for place in model.indices {
                #expect(list[place].id == model[place].id)
                #expect(list.index(of: model[place]) == place)
            }
            let start = Int.random(in: 0...model.count, using: &numbers)
            let part = list.entries(start..<start + 300)
            #expect(part.map { $0.id } == model[start...].prefix(300).map { $0.id })
        }
    }

    @Test func countsAreSums() {
        var numbers = SeededNumbers(seed: 4)
        var model = [3]
        var counts = ChunkCounts(model)
        for _ in 0..<1_000 {
            if model.isEmpty {
                model = (0..<Int.random(in: 1...9, using: &numbers)).map { $0 + 1 }
                counts = ChunkCounts(model)
            }
            let chunk = Int.random(in: 0..<model.count, using: &numbers)
            switch Int.random(in: 0..<4, using: &numbers) {
            case 0:
                let others = (0..<Int.random(in: 0...2, using: &numbers)).map { _ in
                    Int.random(in: 1...5, using: &numbers)
                }
                model.replaceSubrange(chunk...chunk, with: others)
                counts.replace(chunk, by: others)
            default:
                let change = Int.random(in: 1 - model[chunk]...3, using: &numbers)
                model[chunk] += change
                counts.add(change, to: chunk)
            }
            #expect(counts.total == model.reduce(0, +))
            var position = 0
            for (chunk, count) in model.enumerated() {
                #expect(counts[chunk] == count && counts.start(of: chunk) == position)
                for offset in 0..<count {
                    let place = counts.place(of: position + offset)
                    #expect(place.chunk == chunk && place.offset == offset)
                }
                position += count
            }
        }
    }
}
