import Foundation
import Realtime
import Synchronization
import Testing

/// Models that several threads use, and what keeps them alive.
@Suite struct ModelThreadsTests {
    @Test(.timeLimit(.minutes(5))) func severalThreadsSaveReadAndObserve() async throws {
        let box = try ModelBox([("players", ["_id": "sum", "score": 0])])
        let threads = 8
        let rounds = 25
        let inserted = Mutex(Set<String>())
        let observation = box.models.observeObjects { changes in
            let new = changes.inserted(Message.self)
            inserted.withLock { $0.formUnion(new) }
        }
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<threads {
                group.addTask {
                    do {
                        for round in 0..<rounds {
                            let query = try box.models.observe(
                                Player.self
                            ) { _ in }
                            let message = Message(
                                id: "\(thread)-\(round)", sender: Player.Reference(id: "sum"))
                            try box.models.insert(message)
                            let sent = try box.models.get(box.player("sum").sentMessages)
                            #expect(sent.contains(message))
                            query.stop()
                        }
                    } catch {
                        Issue.record(error)
                    }
                }
            }
        }
        #expect(try box.player("sum").sentMessages.count == threads * rounds)
        #expect(try box.models.count(Message.self) == threads * rounds)
        try await LiveChangesTests.settle(box.client)
        #expect(inserted.withLock { $0.count } == threads * rounds)
        observation.stop()
    }

    /// A stub keeps other threads from the documents. So it must not wait for one of them.
    @Test func aStubObservesWhileAnotherThreadBeginsTo() throws {
        let box = try ModelBox(ModelBox.players)
        let (isInStub, isBeginning) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let isDone = DispatchSemaphore(value: 0)
        try box.client.setStub("observe") { [models = box.models] _, _ in
            isInStub.signal()
            isBeginning.wait()
            // The other thread needs a moment to come to the documents.
            for _ in 0..<1_000 { sched_yield() }
            models.observeObjects { _ in }.stop()
            return .null
        }
        Thread.detachNewThread {
            isInStub.wait()
            isBeginning.signal()
            box.models.observeObjects { _ in }.stop()
            isDone.signal()
        }
        Thread.detachNewThread {
            #expect(throws: Never.self) { try box.client.send("observe") }
            isDone.signal()
        }
        // A guard against hanging.
        for _ in 0..<2 { #expect(isDone.wait(timeout: .now() + 300) == .success) }
    }

    /// Observers that begin at the same time: those that have begun before a change get it.
    @Test(.timeLimit(.minutes(5))) func noChangeIsMissedWhileOthersBegin() async throws {
        var options = DDPClient.Options()
        options.executor = .loop
        let client = try DDPClient("ws://127.0.0.1:1", options: options)
        let players = try client.collection("players")
        for round in 0..<50 {
            let models = try DDPModels(client, Player.self)
            let missing = Mutex(Set<String>())
            let observations = Mutex<[DDPModelObservation]>([])
            DispatchQueue.concurrentPerform(iterations: 4) { thread in
                let id = "\(round)-\(thread)"
                let observation = models.observeObjects { changes in
                    guard changes.inserted(Player.self).contains(id) else { return }
                    missing.withLock { _ = $0.remove(id) }
                }
                observations.withLock { $0.append(observation) }
                missing.withLock { _ = $0.insert(id) }
                #expect(throws: Never.self) { try players.insert(["_id": .string(id)]) }
            }
            try await LiveChangesTests.settle(client)
            #expect(missing.withLock { $0 } == [])
            for observation in observations.withLock({ $0 }) { observation.stop() }
        }
    }

    @Test(.timeLimit(.minutes(5))) func observingAClosedClientEnds() async throws {
        let box = try ModelBox(ModelBox.players)
        var before = box.models.objectChanges.makeAsyncIterator()
        box.client.close()
        #expect(await before.next() == nil)
        var after = box.models.objectChanges.makeAsyncIterator()
        #expect(await after.next() == nil)
        let other = try ModelBox()
        other.client.close()
        try await ModelThreadsTests.barrier()
        var first = other.models.objectChanges.makeAsyncIterator()
        #expect(await first.next() == nil)
        #expect(throws: RealtimeError.self) { try box.models.changes(Player.self) }
        #expect(throws: RealtimeError.self) { try box.models.insert(Player()) }
        #expect(throws: RealtimeError.self) { try DDPModels(box.client, Player.self) }
    }

    @Test(.timeLimit(.minutes(5))) func nothingRetainsAClientThatNobodyUses() async throws {
        weak var client: DDPClient?
        weak var models: DDPModels?
        do {
            let box = try ModelBox(ModelBox.players)
            (client, models) = (box.client, box.models)
            let query = try box.models.observe(Author.self) { _ in }
            let list = try box.client.collection("players").observeList { _ in }
            let observation = box.models.observeObjects { _ in }
            let objects = box.models.objectChanges
            let loader = try SubscriptionLoader(box.client)
            try loader.add("all")
            try loader.whenReady { _ in }
            var changes = try box.models.changes(Player.self).makeAsyncIterator()
            #expect(try await changes.next()?.count == 4)
            #expect(client != nil && models != nil)
            withExtendedLifetime((query, list, observation, objects, loader)) {}
        }
        // The loop's thread may have used them for the last report.
        try await ModelThreadsTests.barrier()
        #expect(client == nil && models == nil)
    }

    /// Waits until the loop's thread has done what it has begun.
    private static func barrier() async throws {
        try await withCheckedThrowingContinuation {
            (continuation: CheckedContinuation<Void, any Error>) in
            do {
                try Loop.shared.post { continuation.resume() }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }
}
