import Testing

@testable import Session

struct ActionQueueTests {
    private func queue(_ actions: Int...) -> ActionQueue<Int> {
        var queue = ActionQueue<Int>()
        for action in actions { queue.append(action) }
        return queue
    }

    private func all(_ queue: ActionQueue<Int>) -> [Int] {
        var queue = queue
        var actions: [Int] = []
        while let action = queue.next() { actions.append(action) }
        #expect(queue.isEmpty)
        return actions
    }

    @Test func actionsComeInTheirOrderAlsoThoseThatAreAddedMeanwhile() {
        var queue = queue(1, 2)
        #expect(queue.next() == 1)
        queue.append(3)
        #expect(!queue.isEmpty)
        #expect(all(queue) == [2, 3])
    }

    @Test func anEmptyQueueIsUsedAgain() {
        var queue = queue(1)
        #expect(all(queue) == [1])
        _ = queue.next()
        #expect(queue.next() == nil)
        queue.append(2)
        #expect(all(queue) == [2])
    }

    @Test func aMarkSeparatesWhatFollows() {
        var queue = queue(1, 2, 3)
        #expect(queue.next() == 1)
        #expect(!queue.isPastMark)
        queue.mark()
        queue.append(4)
        // The first one stands.
        queue.mark()
        queue.append(5)
        let isWithdrawn = queue.withdraw { $0 == 2 }
        #expect(isWithdrawn)
        #expect(queue.next() == 3)
        #expect(!queue.isPastMark)
        #expect(queue.next() == 4)
        #expect(queue.isPastMark)
        queue.removeMark()
        #expect(!queue.isPastMark)
        queue.mark()
        #expect(queue.next() == 5)
        #expect(!queue.isPastMark)
        queue.append(6)
        #expect(queue.next() == 6)
        #expect(queue.isPastMark)
    }

    @Test func aMarkStaysWhenWhatFollowsIsRemoved() {
        var queue = queue(1)
        queue.mark()
        for action in 2...5 { queue.append(action) }
        let isWithdrawn = queue.withdraw {
            $0 == 3
        } announcedBy: {
            $0 == 2
        }
        #expect(isWithdrawn)
        queue.removeAll { $0 == 4 }
        #expect(queue.next() == 1)
        #expect(!queue.isPastMark)
        #expect(queue.next() == 5)
        #expect(queue.isPastMark)
    }

    @Test func onlyAnActionThatWasNotTakenIsWithdrawn() {
        var queue = queue(1, 2, 1, 3)
        #expect(queue.next() == 1)
        let first = queue.withdraw { $0 == 1 }
        let second = queue.withdraw { $0 == 1 }
        #expect(first && !second)
        #expect(all(queue) == [2, 3])
    }

    @Test func anAnnouncementIsWithdrawnWithItsAction() {
        var queue = queue(10, 1, 10, 2)
        #expect(queue.next() == 10)
        let one = queue.withdraw({ $0 == 1 }, announcedBy: { $0 == 10 })
        let two = queue.withdraw({ $0 == 2 }, announcedBy: { $0 == 10 })
        #expect(one && two)
        #expect(all(queue) == [])
    }

    @Test func onlyWhatWaitsIsCountedAndRemoved() {
        var queue = queue(1, 2, 3, 4)
        #expect(queue.next() == 1)
        #expect(queue.sum { $0 } == 9)
        queue.removeAll { $0 == 3 }
        #expect(queue.sum { $0 } == 6)
        #expect(all(queue) == [2, 4])
    }
}
