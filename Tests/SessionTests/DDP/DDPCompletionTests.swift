import Documents
import Session
import Testing
import Wire

/// When calls are complete: once no call writes a document that a call wrote which was sent before
/// them (M12). That calls join which were not sent changes nothing.
struct DDPCompletionTests {
    /// Call 2 waits for the document of call 1, which call 4 writes too. That is not sent before
    /// the call 3, which waits for the others.
    private func standstill(_ change: (inout DDPConfiguration) -> Void = { _ in }) -> DDPModel {
        let model = DDPModel.connected(change)
        model.insert(["_id": "a"])
        model.call("m")
        model.call("wait") { $0.isWait = true }
        model.set("a", 1)
        model.updated(2)
        model.result(2)
        model.result(1)
        _ = model.done()
        // Call 1 comes when no call that was sent writes the document.
        model.updated(1)
        #expect(model.done() == ["done 1 1"])
        return model
    }

    @Test func aCallWaitsForAWriterThatWasNotSent() {
        let model = standstill()
        #expect(model.document("a") == #"{"n":1}"#)
        #expect(model.reopen() == ["> connect 1 S 5", "> method 3 wait []"])
        // The server has kept the session: what waited still waits.
        model.confirm("S")
        model.updated(3)
        model.result(3)
        #expect(
            model.done().suffix(2) == [
                "done 3 1", #"> method 4 /c/update [{"_id":"a"},{"$set":{"n":1}}]"#,
            ])
        model.result(4)
        _ = model.done()
        model.updated(4)
        #expect(model.done() == ["a gone", "done 2 1", "done 4 1"])
    }

    @Test func callsThatWaitForEachOtherEndInTime() {
        let model = standstill()
        model.pass(.milliseconds(29_999))
        #expect(!model.done().contains("done 2 1"))
        model.pass(.milliseconds(1))
        #expect(model.done().suffix(2) == ["done 2 1", "> method 3 wait []"])
    }

    @Test func withoutALimitTheyWaitForANewSession() {
        let model = standstill { $0.quiescenceLimit = .zero }
        model.pass(.seconds(3600))
        #expect(!model.done().contains("done 2 1"))
        _ = model.reopen()
        model.confirm("T")
        model.updated(3)
        #expect(model.done().contains("done 2 1"))
    }

    @Test func aSubscriptionWaitsToo() {
        let model = DDPModel.connected()
        _ = model.subscribe("all")
        model.insert(["_id": "a"])
        model.ready("s1")
        model.call("wait") { $0.isWait = true }
        model.set("a", 1)
        model.result(1)
        _ = model.done()
        model.updated(1)
        #expect(model.done() == ["done 1 1", "> method 2 wait []"])
        model.result(2)
        model.updated(2)
        #expect(!model.done().contains("ready 1"))
        model.updated(3)
        #expect(model.done() == ["a gone", "ready 1"])
    }

    /// Time that grew with the product of their numbers would be many minutes.
    @Test(.timeLimit(.minutes(5))) func manyCallsWaitForManyDocuments() {
        let count = 3_000
        let model = DDPModel.connected()
        for number in 1...count { model.insert(["_id": .string("d\(number)")]) }
        model.call("wait") { $0.isWait = true }
        for number in 1...count { model.set("d\(number)", 1) }
        for call in 1...count {
            model.result(call)
            model.updated(call)
        }
        // All but the last wait for documents that later calls write.
        #expect(model.done().filter { $0.hasPrefix("done") } == ["done \(count) 1"])
        model.pass(.seconds(30))
        #expect(model.done().filter { $0.hasPrefix("done") }.count == count - 1)
    }
}
