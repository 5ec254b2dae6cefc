import Testing
import Wire

@testable import Session

struct DueQueueTests {
    @Test func equalTimesKeepTheirOrder() {
        var queue = DueQueue<String>()
        let start = Instant(nanoseconds: 0)
        for id in ["b", "a", "c"] { queue.set(id, due: start + .seconds(1)) }
        queue.set("d", due: start)
        #expect(queue.first == start)
        let first = queue.takeDue(start)
        queue.remove("a")
        let rest = queue.takeDue(start + .seconds(1))
        #expect(first == ["d"] && rest == ["b", "c"])
        #expect(queue.first == nil)
    }

    @Test func onlyAnotherTimeChangesThePlace() {
        var queue = DueQueue<String>()
        let start = Instant(nanoseconds: 0)
        for id in ["a", "b", "a"] { queue.set(id, due: start) }
        queue.set("c", due: start)
        queue.set("c", due: nil)
        queue.set("b", due: start + .seconds(1))
        queue.set("b", due: start)
        let first = queue.takeFirst(start)
        let second = queue.takeFirst(start)
        #expect(first == "a" && second == "b")
        #expect(queue.takeFirst(start) == nil)
    }

    /// Compares with a list.
    @Test(arguments: 0..<10) func returnsWhatIsDue(seed: UInt64) {
        var random = SeededNumbers(state: seed)
        var queue = DueQueue<Int>()
        var list: [(id: Int, due: Int)] = []
        let start = Instant(nanoseconds: 0)
        for _ in 0..<2_000 {
            let id = Int(random.next() % 50)
            let due = Int(random.next() % 1_000)
            switch random.next() % 4 {
            case 0:
                queue.remove(id)
                list.removeAll { $0.id == id }
            case 1:
                let due = due / 4
                let expected = list.filter { $0.due <= due }
                #expect(
                    queue.takeDue(start + .seconds(due)).sorted() == expected.map { $0.id }.sorted()
                )
                list.removeAll { $0.due <= due }
            default:
                queue.set(id, due: start + .seconds(due))
                list.removeAll { $0.id == id }
                list.append((id, due))
            }
            #expect(queue.first == list.map { start + .seconds($0.due) }.min())
        }
    }
}

struct SeededNumbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state >> 33
    }
}
