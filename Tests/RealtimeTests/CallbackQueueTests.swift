import Synchronization
import Testing

@testable import Realtime

@Suite(.timeLimit(.minutes(5))) struct CallbackQueueTests {
    /// A queue whose calls put further calls into it, until it is stopped.
    private final class Endless: Sendable {
        let queue: CallbackQueue
        let isStopped = Atomic<Bool>(false)
        let calls = Atomic<Int>(0)

        init(on executor: HandlerExecutor) {
            queue = CallbackQueue(on: executor, .max, .max) {}
        }

        func put() {
            _ = queue.put(count: 0, isOwed: false) { [self] in
                calls.add(1, ordering: .relaxed)
                if !isStopped.load(ordering: .acquiring) { put() }
            }
        }
    }

    private actor Place {
        func visit() {}
    }

    /// Calls follow each other on their actor, but its other work has turns.
    @Test func aFullQueueLeavesTurnsToOthers() async {
        let place = Place()
        for executor in [HandlerExecutor.main, .actor(place)] {
            let endless = Endless(on: executor)
            endless.put()
            while endless.calls.load(ordering: .relaxed) < 1000 { await Task.yield() }
            await place.visit()
            await Task { @MainActor in endless.isStopped.store(true, ordering: .releasing) }.value
            endless.queue.finish()
        }
    }

    /// Releasing a queue ends its task after the calls that wait; closing it drops them.
    @Test func waitingCallsRunUnlessTheQueueIsClosed() async {
        for isClosed in [false, true] {
            let notes = Notes()
            await MainActor.run {
                let queue = CallbackQueue(on: .main, .max, .max) {}
                for number in 0..<200 {
                    _ = queue.put(count: 0, isOwed: number == 199) { notes.add("\(number)") }
                }
                if isClosed { queue.close() }
            }
            await notes.wait(for: "199")
            #expect(notes.all == (isClosed ? ["199"] : (0..<200).map { "\($0)" }))
        }
    }

    /// A call that was retained is released on the actor, and not with the queue.
    @Test @MainActor func callsAreReleasedWhenTheyHaveRun() async {
        final class Token: Sendable {}
        let queue = CallbackQueue(on: .main, .max, .max) {}
        let (done, finish) = AsyncStream<Void>.makeStream()
        weak var weakToken: Token?
        do {
            let token = Token()
            weakToken = token
            _ = queue.put(count: 0, isOwed: false) { withExtendedLifetime(token) {} }
        }
        _ = queue.put(count: 0, isOwed: false) { finish.finish() }
        for await _ in done {}
        #expect(weakToken == nil)
        queue.finish()
    }
}
