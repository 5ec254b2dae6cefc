import Synchronization
import Testing

@testable import Realtime

/// Which ids are stored, whatever the order of the loop's thread, the handlers and `close`.
struct UnfinishedEventsTests {
    private final class Stored: Sendable {
        let ids = Mutex<[String]>([])
    }

    private let stored = Stored()
    private let events: UnfinishedEvents

    init() {
        events = UnfinishedEvents { [stored] id in stored.ids.withLock { $0.append(id) } }
    }

    private var ids: [String] { stored.ids.withLock { $0 } }

    /// The loop passes an event to handlers.
    /// - Returns: its number.
    @discardableResult
    private func deliver(_ event: Int, handlers: Int = 1, entirely: Bool = true) -> Int {
        var number = 0
        for _ in 0..<handlers { number = events.add(String(event)) }
        if entirely { events.endDelivery() }
        return number
    }

    @Test func anIDIsStoredAfterAllHandlersOfItAndOfThoseBefore() {
        let numbers = (1...2).map { deliver($0, handlers: 2) }
        for _ in 0..<2 { events.run(numbers[1], on: 1) {} }
        events.run(numbers[0], on: 1) {}
        #expect(ids.isEmpty)
        events.run(numbers[0], on: 2) {}
        #expect(ids == ["2"])
    }

    @Test func anEventThatNobodyWantsIsStoredAfterThoseBefore() {
        let number = deliver(1)
        events.noteLast("2")
        #expect(ids.isEmpty)
        events.run(number, on: 1) {}
        #expect(ids == ["2"])
    }

    /// Its handler closes, and the loop delivers more events before, meanwhile and after.
    @Test func closingInAHandlerStoresItsEventAndNoneAfterIt() {
        let number = deliver(1)
        deliver(2)
        events.run(number, on: 1) {
            deliver(3)
            events.noteLast("3")
            events.close(on: 1)
            #expect(ids == ["1"])
            deliver(4)
            events.noteLast("4")
        }
        #expect(ids == ["1"])
    }

    /// Another thread closes between two handlers of an event: the second one misses it.
    @Test func closingElsewhereStoresNoEventThatAHandlerMissed() {
        events.run(deliver(1), on: 1) {}
        events.run(deliver(2, entirely: false), on: 1) {}
        events.close(on: 2)
        // The end of the read.
        events.noteLast("2")
        #expect(ids == ["1"])
    }

    @Test func closingElsewhereLeavesEventsToTheirHandlers() {
        let numbers = (1...2).map { deliver($0) }
        events.run(numbers[0], on: 1) {
            events.close(on: 2)
            #expect(ids.isEmpty)
        }
        #expect(ids == ["1"])
    }

    @Test func anEventThatAnIterationTookLastIsNotStored() {
        let taker = EventTaker(events)
        taker.take(deliver(1))
        deliver(2)
        taker.finish()
        #expect(ids == ["1"])
        taker.take(deliver(3))
        events.close(on: 1)
        #expect(ids == ["1"])
    }

    @Test func resettingForgetsWhatWasTaken() {
        let numbers = (1...2).map { deliver($0) }
        events.run(numbers[0], on: 1) { events.forget() }
        #expect(ids.isEmpty)
        events.run(numbers[1], on: 1) {}
        #expect(ids == ["2"])
    }
}
