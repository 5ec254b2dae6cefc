import Documents
import Session
import Testing
import Wire

struct DDPMethodTests {
    // MARK: Calls

    @Test func theResultComesEarlyAndTheEndWithTheDocuments() {
        let model = DDPModel.connected()
        model.call("m", ["x", .date(5)])
        #expect(model.done() == [#"> method 1 m ["x",{"$date":5}]"#])
        model.result(1, #"{"$date":7}"#)
        #expect(model.done() == [#"result 1 {"$date":7}"#])
        model.updated(1)
        #expect(model.done() == [#"done 1 {"$date":7}"#])
    }

    @Test func documentsMayComeBeforeTheResult() {
        let model = DDPModel.connected()
        model.call("m")
        _ = model.done()
        model.updated(1)
        #expect(model.done() == [])
        model.server(#"{"msg":"result","id":"1"}"#)
        #expect(model.done() == ["result 1 null", "done 1 null"])
    }

    @Test func errorsEndACallWithItsDocumentsToo() {
        let model = DDPModel.connected()
        model.call("m")
        _ = model.done()
        model.refuse(1, #"{"error":"no-way","reason":"because"}"#)
        #expect(model.done() == ["result 1 no-way"])
        model.updated(1)
        #expect(model.done() == ["done 1 no-way"])
    }

    @Test func callsBeforeTheConnectionAreSentWithIt() {
        let model = DDPModel()
        model.call("m")
        #expect(model.done() == [])
        model.session.connect(now: model.now)
        _ = model.done()
        model.open()
        #expect(model.done() == ["> connect 1", "> method 1 m []"])
    }

    @Test func answersThatNobodyWaitsForAreIgnored() {
        let model = DDPModel.connected()
        model.call("m")
        model.updated(1)
        model.result(1)
        _ = model.done()
        model.result(1)
        model.result(7)
        model.updated(1, 7)
        model.server(#"{"msg":"updated","methods":["01","x",""]}"#)
        #expect(model.done() == [])
    }

    /// Work that grew with the square of their number would take minutes.
    @Test(.timeLimit(.minutes(5))) func manyCallsAreOutstandingTogether() {
        let count = 20_000
        let model = DDPModel.connected()
        for _ in 0..<count / 2 { model.call("m") }
        _ = model.reopen()
        model.confirm("T")
        for _ in 0..<count / 2 { model.call("m") }
        #expect(model.done().count { $0.hasPrefix("> method") } == count / 2)
        for call in 1...count {
            model.result(call)
            model.updated(call)
        }
        #expect(model.done().count { $0.hasPrefix("done") } == count)
    }

    /// Minimongo's order.
    @Test func aStubChangesTheFirstDocumentThatTheSelectorNames() throws {
        let model = DDPModel.connected()
        for id in ["a", "b", "c"] { model.added(id, #"{"n":0}"#) }
        _ = model.done()
        model.stub = { session, _ in
            let selector: EJSON = ["_id": ["$in": ["x", "c", "a", "c"]]]
            let changed = try? session.updateInStub("c", selector, ["$set": ["n": 1]])
            return .success(.number(Double(changed ?? -1)))
        }
        model.call("stub")
        #expect(model.document("a") == #"{"n":0}"# && model.document("c") == #"{"n":1}"#)
    }

    @Test func callsThatWaitAreABarrier() {
        let model = DDPModel.connected()
        for (name, isWait) in [("a", false), ("b", true), ("c", false), ("d", false), ("e", true)] {
            model.call(name) { $0.isWait = isWait }
        }
        #expect(model.done() == ["> method 1 a []"])
        model.result(1)
        #expect(model.done() == ["result 1 1"])
        model.updated(1)
        #expect(model.done() == ["done 1 1", "> method 2 b []"])
        model.updated(2)
        model.result(2)
        #expect(
            model.done() == ["result 2 1", "done 2 1", "> method 3 c []", "> method 4 d []"])
        // These two may end in any order.
        model.result(4)
        model.updated(4)
        #expect(model.done() == ["result 4 1", "done 4 1"])
        model.result(3)
        model.updated(3)
        #expect(model.done() == ["result 3 1", "done 3 1", "> method 5 e []"])
    }

    @Test func aCallThatWaitsHoldsDocumentsBack() {
        let model = DDPModel.connected()
        model.call("login") { $0.isWait = true }
        _ = model.done()
        model.added("a")
        model.result(1)
        #expect(model.done() == ["result 1 1"])
        model.updated(1)
        #expect(model.done() == ["a {}", "done 1 1"])
    }

    // MARK: Stubs

    @Test func aStubIsSeenAtOnceAndItsValueReturned() {
        let model = DDPModel.connected()
        model.stub = { session, ids in
            DDPStubOutcome { () throws(DDPError) -> EJSON in
                try session.insertInStub("c", ["_id": "a"], drawing: &ids)
            }
        }
        #expect(model.call("stub", [1]) == "a")
        // The message has the parameters of the caller.
        #expect(model.done() == ["a {}", "> method 1 stub [1]"])
    }

    @Test func aSeedIsSentOnlyIfItWasUsed() {
        let model = DDPModel.connected()
        model.call("stub")
        model.stub = { session, ids in
            _ = session.draw(from: "x", drawing: &ids) { $0.id() }
            return .success(.null)
        }
        model.call("stub")
        #expect(model.done() == ["> method 1 stub []", "> method 2 stub [] seed1"])
    }

    /// What Meteor's collections refuse. Nothing is sent, unless a stub did it.
    @Test(
        arguments: [
            5, ["a"], ["$a": 1], ["a.b": 1], ["a": ["$b": 1]], ["a": [["b.c": 1]]], ["a\0": 1],
            ["_id": .null], ["_id": ""], ["_id": 5], ["_id": true], ["_id": ["a"]],
            ["_id": ["a": 1]],
            ["_id": .date(1)],
        ] as [EJSON])
    func documentsThatCannotBeInserted(document: EJSON) {
        let model = DDPModel.connected()
        var ids = DDPModel.IDs()
        let now = model.now
        let refused: (DDPError) -> Bool = { $0.kind == .stub && $0.code == "400" }
        #expect {
            _ = try model.session.insert("c", document, drawing: &ids, now: now)
        } throws: { ($0 as? DDPError).map(refused) ?? false }
        #expect(model.done() == [])
        var failed: DDPError?
        model.stub = { session, ids in
            do throws(DDPError) {
                _ = try session.insertInStub("c", document, drawing: &ids)
            } catch {
                failed = error
            }
            return .success(.null)
        }
        model.call("stub")
        #expect(failed.map(refused) ?? false)
        #expect(model.done() == ["> method 1 stub []"])
    }

    @Test func anObjectIDIsAnID() {
        let model = DDPModel.connected()
        let id = ObjectID(hex: "0123456789abcdef01234567").map { EJSON.objectID($0) } ?? .null
        #expect(model.insert(["_id": id, "a": ["b": [1]]]) == id)
    }

    @Test func aCallInsideAStubSendsNothing() {
        let model = DDPModel.connected()
        model.stub = { session, ids in
            session.callInStub(DDPRequest("/c/insert", [["_id": "in"]]), drawing: &ids)
        }
        #expect(model.call("stub") == "in")
        #expect(model.done() == ["in {}", "> method 1 stub []"])
    }

    @Test func aStubThatFailsIsUndoneByTheServerOrAtOnce() {
        let model = DDPModel.connected()
        model.stub = { session, ids in
            _ = try? session.insertInStub("c", ["_id": "a"], drawing: &ids)
            return .failure(DDPError(.stub, "no"))
        }
        #expect(model.call("stub") { $0.throwsStubErrors = true } == nil)
        #expect(model.done() == [])
        #expect(model.document("a") == nil)
        #expect(model.call("stub") == .null)
        #expect(model.done() == ["a {}", "> method 2 stub []"])
        model.updated(2)
        #expect(model.done() == ["a gone"])
    }

    // MARK: Latency compensation

    @Test func whatTheServerDoesNotDoIsUndone() {
        let model = DDPModel.connected()
        model.insert(["_id": "a", "n": 1])
        #expect(model.done().first == #"a {"n":1}"#)
        model.updated(1)
        #expect(model.done() == ["a gone"])
        model.result(1)
        #expect(model.done() == ["result 1 1", "done 1 1"])
    }

    @Test func whatTheServerDoesAsExpectedIsSilent() {
        let model = DDPModel.connected()
        model.insert(["_id": "a", "n": 1])
        _ = model.done()
        model.added("a", #"{"n":1}"#)
        model.updated(1)
        #expect(model.done() == [])
        #expect(model.document("a") == #"{"n":1}"#)
    }

    /// From Meteor 3.0 on, collections have methods of two names.
    @Test(arguments: [true, false]) func writesMayCallTheAsyncMethods(isWanted: Bool) {
        let model = DDPModel.connected { $0.usesAsyncMethods = isWanted }
        let suffix = isWanted ? "Async" : ""
        model.write()
        #expect(
            model.done() == [
                "a {}", #"> method 1 /c/insert\#(suffix) [{"_id":"a"}]"#, #"a {"n":1}"#,
                #"> method 2 /c/update\#(suffix) [{"_id":"a"},{"$set":{"n":1}}]"#, "a gone",
                #"> method 3 /c/remove\#(suffix) [{"_id":"a"}]"#,
            ])
        // A program may call either.
        model.call("/c/insertAsync", [["_id": "b"]])
        #expect(model.done() == ["b {}", #"> method 4 /c/insertAsync [{"_id":"b"}]"#])
    }

    @Test func aDocumentWaitsForAllCallsThatWroteIt() {
        let model = DDPModel.connected()
        model.added("a", #"{"n":0}"#)
        model.set("a", 1)
        model.set("a", 2)
        _ = model.done()
        model.server(
            #"{"msg":"changed","collection":"c","id":"a","fields":{"n":7,"m":1}}"#)
        // Other documents do not wait.
        model.added("b")
        #expect(model.done() == ["b {}"])
        model.updated(1)
        #expect(model.done() == [])
        model.updated(2)
        #expect(model.done() == [#"a {"n":7,"m":1}"#])
    }

    @Test func readyWaitsForDocumentsThatAreHeldBack() {
        let model = DDPModel.connected()
        _ = model.subscribe("all")
        model.insert(["_id": "a"])
        _ = model.done()
        model.ready("s1")
        #expect(model.done() == [])
        model.updated(1)
        #expect(model.done() == ["a gone", "ready 1"])
    }

    @Test func callsEndInTheOrderOfTheirDocuments() {
        let model = DDPModel.connected()
        model.insert(["_id": "a"])
        model.insert(["_id": "b"])
        model.result(2)
        model.result(1)
        _ = model.done()
        model.updated(2)
        #expect(model.done() == ["b gone"])
        model.updated(1)
        #expect(model.done() == ["a gone", "done 2 1", "done 1 1"])
    }

    @Test func callsThatWereNotSentHoldNothingUp() {
        let model = DDPModel.connected()
        model.call("wait") { $0.isWait = true }
        model.insert(["_id": "a"])
        #expect(model.done() == ["> method 1 wait []", "a {}"])
        model.result(1)
        model.updated(1)
        #expect(model.done().prefix(2) == ["result 1 1", "done 1 1"])
    }

    @Test func aStubBeforeTheConnectionIsRemembered() {
        let model = DDPModel()
        model.insert(["_id": "a"])
        model.connect()
        #expect(model.document("a") == "{}")
        model.updated(1)
        #expect(model.done() == ["a gone"])
    }

    @Test func documentsThatWaitAreThereWhenAStubRuns() {
        let model = DDPModel.connected { $0.bufferInterval = .milliseconds(5) }
        model.added("a", #"{"n":1}"#)
        #expect(model.document("a") == nil)
        #expect(model.call("/c/update", [["_id": "a"], ["$inc": ["n": 1]]]) == 1)
        #expect(model.document("a") == #"{"n":2}"#)
    }

    /// Also while a call that was sent meanwhile holds back what follows: otherwise the snapshot of
    /// a document would be older than what the server has sent, and come back as a ghost.
    @Test func documentsThatWaitAreThereDuringAWaitingCall() {
        let model = DDPModel.connected { $0.bufferInterval = .milliseconds(5) }
        model.added("a")
        model.pass(.milliseconds(5))
        model.server(#"{"msg":"removed","collection":"c","id":"a"}"#)
        model.call("login") { $0.isWait = true }
        #expect(model.document("a") == "{}")
        #expect(model.call("/c/remove", [["_id": "a"]]) == 0)
        #expect(model.document("a") == nil)
        model.result(1)
        model.updated(1)
        model.result(2)
        model.updated(2)
        #expect(model.document("a") == nil)
    }
}

extension Result where Success == EJSON, Failure == DDPError {
    fileprivate init(_ body: () throws(DDPError) -> EJSON) {
        do throws(DDPError) {
            self = .success(try body())
        } catch {
            self = .failure(error)
        }
    }
}
