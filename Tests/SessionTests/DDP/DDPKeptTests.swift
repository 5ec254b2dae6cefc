import Session
import Testing
import Wire

/// Documents that outlive the process.
struct DDPKeptTests {
    /// A client that begins with the documents of an earlier run: `a`, `b` and `c`.
    private func restarted(
        subscriptions: [EJSON] = [["all"]], user: String? = nil,
        _ change: (inout DDPConfiguration) -> Void = { _ in }
    ) -> DDPModel {
        let model = DDPModel(change)
        let documents: [(id: DocumentID, fields: EJSONObject)] = ["a", "b", "c"].compactMap { id in
            DocumentID(.string(id)).map { ($0, ["n": 1, "old": true]) }
        }
        model.session.keepDocuments(
            DDPKeptDocuments(
                userID: user, subscriptions: subscriptions,
                collections: [.init(name: "c", documents: documents)]))
        return model
    }

    private func connect(_ model: DDPModel) {
        model.session.connect(now: model.now)
        _ = model.done()
        model.open()
        model.confirm("S")
        _ = model.done()
    }

    @Test func documentsAreThereAtOnce() {
        let model = restarted()
        #expect(model.document("a") == #"{"n":1,"old":true}"#)
        #expect(model.session.hasStaleDocuments && model.done() == [])
    }

    @Test func theServerReplacesThemWhenAllSubscriptionsAreReady() {
        let model = restarted(subscriptions: [["all"], ["more", 5]])
        _ = model.subscribe("all")
        connect(model)
        model.added("a", #"{"n":2}"#)
        #expect(model.done() == [#"a {"n":2}"#])
        model.added("b", #"{"n":1,"old":true}"#)
        model.ready("s1")
        // The second one was not asked for again.
        #expect(model.done() == ["ready 1"])
        #expect(model.session.hasStaleDocuments && model.document("c") != nil)
        _ = model.subscribe("more", [5])
        model.ready("s2")
        #expect(model.done().suffix(3) == ["c gone", "current", "ready 2"])
        #expect(model.document("b") != nil && !model.session.hasStaleDocuments)
    }

    @Test func aSubscriptionThatIsRefusedIsNotWaitedFor() {
        let model = restarted(subscriptions: [["all"], ["more"]])
        _ = model.subscribe("all")
        _ = model.subscribe("more")
        connect(model)
        model.added("a", #"{"n":2}"#)
        model.ready("s1")
        _ = model.done()
        model.server(#"{"msg":"nosub","id":"s2","error":{"error":403}}"#)
        #expect(model.done() == ["stopped 2 403", "b gone", "c gone", "current"])
        #expect(model.session.keptDocuments().subscriptions == [["all"]])
    }

    @Test func theyEndInTimeWithoutALimitOfQuiescence() {
        let model = restarted { $0.quiescenceLimit = .zero }
        connect(model)
        model.pass(.seconds(31))
        #expect(model.done().contains("c gone") && !model.session.hasStaleDocuments)
    }

    @Test func whatIsNotAskedForAgainEndsInTime() {
        let model = restarted()
        connect(model)
        model.pass(.seconds(29))
        #expect(model.done().filter { $0.hasSuffix("gone") } == [])
        model.pass(.seconds(2))
        #expect(
            model.done().filter { $0 != "> ping" }
                == ["a gone", "b gone", "c gone", "current", "keep"])
    }

    @Test func theyStayWithoutAConnection() {
        let model = restarted()
        model.session.connect(now: model.now)
        for _ in 0..<5 {
            model.pass(.seconds(600))
            _ = model.done()
            model.lose()
        }
        #expect(model.document("a") != nil && model.session.hasStaleDocuments)
    }

    @Test func aSecondConnectionStillWaits() {
        let model = restarted()
        _ = model.subscribe("all")
        connect(model)
        model.added("a", #"{"n":2}"#)
        _ = model.done()
        #expect(model.reopen().contains { $0.hasPrefix("> sub") })
        model.confirm("T")
        // Neither the confirmed document nor the others flicker.
        #expect(model.done() == ["connected"])
        #expect(model.document("a") == #"{"n":2}"#)
        model.added("a", #"{"n":2}"#)
        model.added("b", #"{"n":1,"old":true}"#)
        model.ready("s1")
        #expect(model.done() == ["c gone", "current", "ready 1"])
    }

    @Test func aStubSeesThemAndTheServerDecides() {
        let model = restarted()
        _ = model.subscribe("all")
        connect(model)
        model.set("a", 5)
        #expect(model.document("a") == #"{"n":5,"old":true}"#)
        model.set("b", 6)
        model.call("/c/remove", [["_id": "c"]])
        model.added("a", #"{"n":2}"#)
        model.ready("s1")
        model.updated(1, 2, 3)
        for call in 1...3 { model.result(call) }
        #expect(model.document("a") == #"{"n":2}"#)
        #expect(model.document("b") == nil && model.document("c") == nil)
        #expect(model.session.isSettled && !model.session.hasStaleDocuments)
    }

    @Test func documentsOfAnotherUserAreNotUsed() {
        let model = restarted(user: "somebody")
        #expect(model.document("a") == nil && !model.session.hasStaleDocuments)
    }

    @Test func anotherUserEndsThem() {
        let model = restarted()
        connect(model)
        model.session.setUserID("me", now: model.now)
        #expect(model.done() == ["a gone", "b gone", "c gone", "current", "user me"])
        model.pass(.zero)
        #expect(model.done() == ["keep"])
    }

    @Test func documentsOfAFormerSessionAreNotWritten() {
        let model = restarted()
        _ = model.subscribe("all")
        connect(model)
        model.added("a", #"{"secret":1}"#)
        model.ready("s1")
        model.pass(.seconds(2))
        #expect(model.done().contains("keep"))
        model.session.keptDocuments(took: .zero, now: model.now)
        _ = model.reopen()
        model.confirm("T")
        // Such as after a login that was refused.
        model.session.setUserID("other", now: model.now)
        model.pass(.seconds(5))
        #expect(!model.done().contains("keep"))
        model.ready("s1")
        model.pass(.seconds(2))
        #expect(model.done().contains("keep") && model.document("a") == nil)
    }

    @Test func keepsWhatTheServerHasSent() {
        let model = restarted(subscriptions: [["old"]])
        _ = model.subscribe("all")
        connect(model)
        model.added("a", #"{"n":2}"#)
        model.ready("s1")
        model.set("a", 9)
        model.insert(["_id": "mine"])
        model.call("/c/remove", [["_id": "b"]])
        let kept = model.session.keptDocuments()
        #expect(kept.subscriptions == [["all"], ["old"]])
        let documents = kept.collections.flatMap { $0.documents }
            .map { "\($0.id.wire) \(EJSON.object($0.fields).text)" }
        #expect(
            documents.sorted() == [
                #"a {"n":2}"#, #"b {"n":1,"old":true}"#, #"c {"n":1,"old":true}"#,
            ])
    }

    @Test func changesAreWrittenTogether() {
        let model = restarted()
        connect(model)
        model.added("x")
        model.pass(.milliseconds(500))
        model.added("y")
        #expect(!model.done().contains("keep") && model.session.hasUnkeptDocuments)
        model.pass(.milliseconds(600))
        #expect(model.done() == ["keep"])
        model.added("z")
        model.pass(.seconds(3))
        #expect(!model.done().contains("keep"))
        // Writing takes at most a twentieth of the time.
        model.session.keptDocuments(took: .seconds(1), now: model.now)
        model.pass(.seconds(12))
        #expect(!model.done().contains("keep"))
        model.pass(.seconds(9))
        #expect(model.done().contains("keep"))
        model.session.keptDocuments(took: .zero, now: model.now)
        #expect(!model.session.hasUnkeptDocuments)
    }

    @Test func nothingIsKeptUnlessAskedFor() {
        let model = DDPModel.connected()
        model.added("x")
        model.pass(.seconds(10))
        #expect(!model.done().contains("keep") && !model.session.hasUnkeptDocuments)
    }
}
