import Documents
import Session
import Testing
import Wire

struct DDPReconnectingTests {
    @Test func subscriptionsAreSentAgainButNotThoseThatEnded() {
        let model = DDPModel.connected()
        _ = model.subscribe("all", [1])
        let other = model.subscribe("other", keep: .zero)
        #expect(model.done() == ["> sub s1 all [1]", "> sub s2 other []"])
        model.session.release(other, now: model.now)
        #expect(model.done() == ["> unsub s2"])
        #expect(model.reopen() == ["> connect 1 S 1", "> sub s1 all [1]"])
    }

    @Test func theOldDocumentsStayUntilTheSubscriptionsAreReady() {
        let model = DDPModel.connected()
        _ = model.subscribe("all")
        model.added("a", #"{"n":1}"#)
        model.added("b", #"{"n":1}"#)
        model.added("same")
        model.ready("s1")
        _ = model.done()
        _ = model.reopen()
        model.confirm("T")
        model.added("a", #"{"n":2}"#)
        model.added("same")
        model.added("new")
        #expect(model.done() == ["connected"])
        #expect(model.document("a") == #"{"n":1}"#)
        model.ready("s1")
        // One notification, without what is as before. `ready` is not reported again.
        #expect(Set(model.done()) == [#"a {"n":2}"#, "b gone", "new {}"])
    }

    @Test func withoutReadySubscriptionsNothingIsKept() {
        let model = DDPModel.connected()
        model.added("a")
        _ = model.done()
        _ = model.reopen()
        model.confirm("T")
        #expect(model.done() == ["connected", "a gone"])
    }

    @Test func aSubscriptionThatWasNotReadyHoldsNothingUp() {
        let model = DDPModel.connected()
        _ = model.subscribe("slow")
        _ = model.reopen()
        model.confirm("T")
        model.added("a")
        #expect(model.done() == ["connected", "a {}"])
    }

    @Test func theWaitForSubscriptionsHasALimit() {
        let model = DDPModel.connected()
        _ = model.subscribe("all")
        model.added("a")
        model.ready("s1")
        _ = model.done()
        _ = model.reopen()
        model.confirm("T")
        model.added("b")
        model.pass(.milliseconds(29_999))
        #expect(model.document("b") == nil)
        model.pass(.milliseconds(1))
        #expect(model.document("b") == "{}")
        #expect(model.document("a") == nil)
    }

    @Test func unansweredCallsAreSentAgain() {
        let model = DDPModel.connected()
        model.call("m", [1])
        #expect(model.done() == ["> method 1 m [1]"])
        #expect(model.reopen() == ["> connect 1 S 1", "> method 1 m [1]"])
        model.confirm("T")
        model.updated(1)
        model.result(1)
        #expect(model.done() == ["connected", "result 1 1", "done 1 1"])
    }

    @Test func aCallThatOnlyGotItsResultIsNotSentAgain() {
        let model = DDPModel.connected()
        model.call("m")
        model.result(1)
        #expect(model.done() == ["> method 1 m []", "result 1 1"])
        #expect(model.reopen() == ["> connect 1 S 2"])
        model.confirm("T")
        #expect(model.done() == ["connected", "done 1 1"])
    }

    @Test func aCallThatOnlyGotItsDocumentsIsSentAgain() {
        let model = DDPModel.connected()
        model.call("m")
        model.updated(1)
        _ = model.done()
        #expect(model.reopen() == ["> connect 1 S 2", "> method 1 m []"])
        model.confirm("T")
        model.result(1)
        #expect(model.done() == ["connected", "result 1 1"])
        model.updated(1)
        #expect(model.done() == ["done 1 1"])
    }

    @Test func aCallThatMustNotRunTwiceFails() {
        let model = DDPModel.connected()
        model.call("m") { $0.noRetry = true }
        model.call("n")
        _ = model.done()
        #expect(
            model.reopen() == [
                "> connect 1 S 1", "result 1 invocation-failed", "> method 2 n []",
            ])
        model.confirm("T")
        model.updated(2)
        model.result(2)
        #expect(
            model.done() == [
                "connected", "done 1 invocation-failed", "result 2 1", "done 2 1",
            ])
    }

    @Test func aCallIsRepeatedAsOftenAsItMayBe() {
        let model = DDPModel.connected { $0.maximumCallRepeats = 2 }
        model.call("m")
        _ = model.done()
        for session in ["T", "U"] {
            #expect(model.reopen().contains("> method 1 m []"))
            model.confirm(session)
            _ = model.done()
        }
        #expect(model.reopen().suffix(1) == ["result 1 invocation-failed"])
        model.confirm("V")
        #expect(model.done() == ["connected", "done 1 invocation-failed"])
    }

    @Test func someMethodsAreNeverRepeated() {
        let model = DDPModel.connected { $0.noRetryMethods = ["pay"] }
        model.call("pay")
        model.call("look")
        _ = model.done()
        #expect(
            model.reopen() == [
                "> connect 1 S 1", "result 1 invocation-failed", "> method 2 look []",
            ])
    }

    @Test func aStubBeforeTheSubscriptionsAreReadyOutlivesTheOldDocuments() {
        let model = DDPModel.connected()
        _ = model.subscribe("all")
        model.added("a", #"{"n":1}"#)
        model.ready("s1")
        _ = model.reopen()
        model.confirm("T")
        _ = model.done()
        model.set("a", 5)
        #expect(
            model.done() == [
                #"a {"n":5}"#, #"> method 1 /c/update [{"_id":"a"},{"$set":{"n":5}}]"#,
            ])
        model.added("a", #"{"n":1}"#)
        model.ready("s1")
        #expect(model.done() == [])
        #expect(model.document("a") == #"{"n":5}"#)
        model.updated(1)
        #expect(model.done() == [#"a {"n":1}"#])
    }

    // MARK: Writing while the documents of the former session are there

    /// A client whose former session had the document `a`, and whose new one has sent nothing yet.
    /// The user has changed `a`.
    private func changedInTime() -> DDPModel {
        let model = DDPModel.connected()
        _ = model.subscribe("all")
        model.added("a", #"{"n":1}"#)
        model.ready("s1")
        _ = model.reopen()
        model.confirm("T")
        model.set("a", 5)
        _ = model.done()
        return model
    }

    @Test func aDocumentThatTheNewSessionDoesNotHaveIsGone() {
        let model = changedInTime()
        model.ready("s1")
        #expect(model.done() == ["a gone"])
        model.updated(1)
        model.result(1, "0")
        #expect(model.done() == ["result 1 0", "done 1 0"])
        #expect(model.document("a") == nil)
        // No field of the former one comes back.
        model.added("a", #"{"m":2}"#)
        #expect(model.document("a") == #"{"m":2}"#)
    }

    @Test(arguments: [true, false])
    func whatTheNewSessionSendsIsTheServersVersion(beforeReady: Bool) {
        let model = changedInTime()
        let (added, removed) = (
            #"{"msg":"added","collection":"c","id":"a","fields":{"m":2}}"#,
            #"{"msg":"removed","collection":"c","id":"a"}"#
        )
        if beforeReady { model.server(added, removed, added) }
        model.ready("s1")
        if !beforeReady { model.server(added) }
        model.updated(1)
        #expect(model.document("a") == #"{"m":2}"#)
    }

    @Test func aCallThatFailsInTimeLeavesNothingOfTheFormerSession() {
        let model = DDPModel.connected()
        _ = model.subscribe("all")
        model.added("a", #"{"n":1}"#)
        model.ready("s1")
        _ = model.reopen()
        model.confirm("T")
        model.call("wait") { $0.isWait = true }
        model.call("/c/update", [["_id": "a"], ["$set": ["n": 5]]]) { $0.timeout = .seconds(1) }
        model.pass(.seconds(1))
        model.ready("s1")
        model.result(1)
        model.updated(1)
        #expect(model.document("a") == nil)
    }

    /// No session will send it any more.
    @Test func aClientThatEndsInTimeHasTheFormerDocuments() {
        let model = changedInTime()
        model.session.close(now: model.now)
        #expect(model.document("a") == #"{"n":1}"#)
    }

    @Test func callsThatWaitDoNotMixAfterAReconnect() {
        let model = DDPModel.connected()
        model.call("one")
        model.call("two") { $0.isWait = true }
        model.call("three") { $0.isWait = true }
        #expect(model.done() == ["> method 1 one []"])
        model.result(1)
        model.updated(1)
        #expect(model.done() == ["result 1 1", "done 1 1", "> method 2 two []"])
        #expect(model.reopen() == ["> connect 1 S 3", "> method 2 two []"])
        model.confirm("T")
        model.result(2)
        model.updated(2)
        #expect(model.done() == ["connected", "result 2 1", "done 2 1", "> method 3 three []"])
    }

    @Test func aCallWhoseTimeHasPassedIsNotSentAgain() {
        let model = DDPModel.connected()
        model.call("m") { $0.timeout = .seconds(1) }
        #expect(model.done() == ["> method 1 m []"])
        model.pass(.seconds(1))
        #expect(model.done() == ["result 1 timeout", "done 1 timeout"])
        #expect(model.reopen() == ["> connect 1 S 1"])
    }

    @Test func changesThatWaitedAreDroppedWithTheirSession() {
        let model = DDPModel.connected { $0.bufferInterval = .milliseconds(5) }
        model.added("a")
        _ = model.reopen()
        model.confirm("T")
        model.pass(.seconds(1))
        #expect(model.document("a") == nil)
    }

    @Test func whatIsHeldBackHasALimit() {
        let model = DDPModel.connected()
        model.session.store = DocumentStore(maximumBytes: 1 << 20)
        model.session.declare("c")
        _ = model.subscribe("all")
        model.ready("s1")
        _ = model.reopen()
        model.confirm("T")
        model.added("a")
        let text = String(repeating: "x", count: 100_000)
        // They change nothing, so that only their number counts.
        let message = #"{"msg":"removed","collection":"c","id":"z","more":"\#(text)"}"#
        for number in 1...10 {
            model.server(message)
            #expect(model.document("a") == nil, "\(number)")
        }
        model.server(message)
        #expect(model.document("a") == "{}" && model.session.status == .connected)
    }

    @Test func aLiveQueryThatTakesTooLongEnds() throws {
        for interval in [Duration.zero, .milliseconds(5)] {
            let model = DDPModel.connected { $0.bufferInterval = interval }
            var query = try Query(selector: ["text": ["$regex": "b$"]])
            query.maximumSteps = 100
            _ = try model.session.store.observe(query, in: "c")
            model.added("a", #"{"text":"aaaaaaaab"}"#)
            model.pass(.seconds(1))
            _ = model.done()
            model.added("b", #"{"text":"\#(String(repeating: "a", count: 100))"}"#)
            model.pass(.seconds(1))
            #expect(model.done().last == "end of a query over c")
            // The client lives on.
            #expect(model.session.status == .connected)
            #expect(model.document("b") != nil)
        }
    }

    /// Also without a message of the server.
    @Test func aLiveQueryThatAWriteMakesTooLongEnds() throws {
        let model = DDPModel.connected()
        var query = try Query(selector: ["text": ["$regex": "b$"]])
        query.maximumSteps = 100
        model.added("a", #"{"text":"b"}"#)
        _ = try model.session.store.observe(query, in: "c")
        model.stub = { session, _ in
            let text = EJSON.string(String(repeating: "a", count: 100))
            let count = try? session.updateInStub("c", "a", ["$set": ["text": text]])
            return .success(.number(Double(count ?? -1)))
        }
        _ = model.done()
        model.call("stub")
        #expect(model.done().contains("end of a query over c"))
        model.pass(.zero)
        #expect(model.session.status == .connected)
    }

    /// The connection may have been lost before the message reached the server.
    @Test func anEndThatMayBeLostIsRepeatedInAKeptSession() {
        let model = DDPModel.connected()
        let handle = model.subscribe("all", keep: .zero)
        model.ready("s1")
        _ = model.done()
        model.session.stop(handle, now: model.now)
        #expect(model.done() == ["> unsub s1"])
        #expect(model.reopen() == ["> connect 1 S 2"])
        model.confirm("S")
        model.pass(.seconds(14))
        #expect(!model.done().contains("> unsub s1"))
        model.pass(.seconds(1))
        #expect(model.done().contains("> unsub s1"))
    }

    @Test func aSessionThatTheServerKeptGoesOn() {
        let model = DDPModel.connected()
        _ = model.subscribe("all")
        model.added("a")
        model.ready("s1")
        _ = model.done()
        #expect(model.reopen() == ["> connect 1 S 3", "> sub s1 all []"])
        model.confirm("S")
        model.added("b")
        #expect(model.done() == ["connected", "b {}"])
        #expect(model.document("a") == "{}")
    }
}
