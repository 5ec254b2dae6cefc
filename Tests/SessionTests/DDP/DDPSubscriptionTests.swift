import Documents
import Testing
import Wire

@testable import Session

struct DDPSubscriptionTests {
    // MARK: Streams

    /// As Rocket.Chat's servers send events.
    @Test func eachMessageOfAStreamIsDelivered() {
        let model = DDPModel.connected { $0.bufferInterval = .milliseconds(5) }
        model.session.setStream("c", true)
        let event = #"{"msg":"changed","collection":"c","id":"id","fields":{"args":[1]}}"#
        model.server(event, event)
        // At once, and each of them.
        #expect(model.done() == Array(repeating: #"c: changed id {"args":[1]} []"#, count: 2))
        model.added("a", #"{"n":1}"#)
        model.server(
            #"{"msg":"addedBefore","collection":"c","id":"b","fields":{},"before":"a"}"#,
            #"{"msg":"movedBefore","collection":"c","id":"b","before":null}"#,
            #"{"msg":"changed","collection":"c","id":"b","cleared":["x"]}"#,
            #"{"msg":"removed","collection":"c","id":"a"}"#)
        #expect(
            model.done() == [
                #"c: added a {"n":1}"#, "c: added b {} a", "c: moved b ",
                #"c: changed b {} ["x"]"#, "c: removed a",
            ])
        #expect(model.session.store.count(of: "c") == 0)
        let due = model.session.wakeUp.map { $0 - model.now } ?? .seconds(60)
        #expect(due >= .seconds(1), "something waits to be applied")
        model.session.setStream("c", false)
        model.added("a")
        model.pass(.milliseconds(5))
        #expect(model.done() == ["a {}"])
    }

    /// Swift considers the Kelvin sign equal to the letter.
    @Test func aStreamIsNamedByBytes() {
        let model = DDPModel.connected()
        model.session.setStream("K", true)
        model.server(#"{"msg":"added","collection":"\#u{212A}","id":"a","fields":{}}"#)
        #expect(!model.done().contains { $0.contains(": added") })
        model.session.setStream("\u{212A}", false)
        model.server(#"{"msg":"changed","collection":"K","id":"a","fields":{}}"#)
        #expect(model.done() == ["K: changed a {} []"])
    }

    @Test func aSubscriptionIsNamedByBytes() {
        var subscriptions = DDPSubscriptions()
        for id in ["K", "\u{212A}"] {
            subscriptions.insert(
                DDPSubscription(id: id, name: id, params: [], keep: .zero))
            subscriptions.ends(id, on: 1)
        }
        subscriptions.change("\u{212A}") { $0.isReady = true }
        #expect(subscriptions["K"]?.isReady == false)
        #expect(subscriptions["\u{212A}"]?.isReady == true)
        subscriptions.hasEnded("K")
        #expect(subscriptions.unanswered.count == 1)
        #expect(subscriptions.remove("K")?.name == "K")
        #expect(subscriptions.inOrder.map { $0.isReady } == [true])
        var quiescence = DDPQuiescence()
        quiescence.reviving = [ByteText("K")]
        quiescence.hold(.ready(["\u{212A}"]), bytes: 1)
        #expect(quiescence.isWaiting)
        quiescence.hold(.ready(["K"]), bytes: 1)
        #expect(!quiescence.isWaiting)
    }

    @Test func aStreamWaitsForNothing() {
        let model = DDPModel.connected()
        model.session.setStream("events", true)
        _ = model.subscribe("all")
        model.ready("s1")
        _ = model.reopen()
        model.confirm("T")
        _ = model.done()
        // The documents of the new session are held back.
        model.added("a")
        let event = #"{"msg":"changed","collection":"events","id":"id","fields":{}}"#
        model.server(event)
        #expect(model.done() == ["events: changed id {} []"])
        #expect(model.reopen().first == "> connect 1 T 3")
    }

    // MARK: The program's own ends

    @Test(arguments: [true, false]) func ownStopsAreReportedIfWanted(isWanted: Bool) {
        let model = DDPModel.connected {
            $0.reportsOwnStops = isWanted
            $0.unusedSubscriptionTime = .zero
        }
        let (first, second) = (model.subscribe("all"), model.subscribe("all"))
        let other = model.subscribe("other")
        _ = model.done()
        model.session.release(first, now: model.now)
        #expect(model.done() == (isWanted ? ["stopped \(first) "] : []))
        model.session.stop(second, now: model.now)
        #expect(model.done() == (isWanted ? ["stopped \(second) "] : []) + ["> unsub s1"])
        // One that has ended already is not reported again.
        model.session.stop(second, now: model.now)
        model.server(#"{"msg":"nosub","id":"s2"}"#)
        model.session.stop(other, now: model.now)
        #expect(model.done() == ["stopped \(other) "])
    }

    // MARK: When documents are applied

    @Test func manyNewDocumentsAreAppliedEarly() {
        let model = DDPModel.connected { $0.bufferInterval = .milliseconds(5) }
        model.session.flushSteps = .max
        let limit = DDPConfiguration.unappliedLimit
        for number in 2..<limit { model.added("d\(number)") }
        model.server(#"{"msg":"changed","collection":"c","id":"d2","fields":{"n":1}}"#)
        #expect(model.done() == [] && model.session.store.count(of: "c") == 0)
        model.added("last")
        #expect(model.done().count == limit - 1)
        model.added("later")
        #expect(model.done() == [])
        model.pass(.milliseconds(5))
        #expect(model.done() == ["later {}"])
    }

    /// Otherwise a server that changes one document all the time would fill the memory.
    @Test func manyChangesAreAppliedEarly() {
        let model = DDPModel.connected { $0.bufferInterval = .milliseconds(5) }
        let limit = DDPConfiguration.unappliedLimit
        for number in 1...limit + 1 {
            if number == limit { #expect(model.done() == []) }
            model.server(
                #"{"msg":"changed","collection":"c","id":"d","fields":{"n":\#(number)}}"#)
        }
        #expect(model.done() == [#"d {"n":\#(limit)}"#])
    }

    /// To clear a field of a wide document takes time for all that follow it.
    @Test func fewFieldsOfAWideDocumentAreClearedAtOnce() {
        let model = DDPModel.connected { $0.bufferInterval = .milliseconds(5) }
        model.session.flushSteps = .max
        let fields = (0..<4096).map { "\"f\($0)\":1" }.joined(separator: ",")
        model.added("wide", "{\(fields)}")
        model.pass(.milliseconds(5))
        #expect(model.done().count == 1)
        // Each one counts as 17 changes.
        for number in 0..<DDPConfiguration.unappliedLimit / 17 {
            model.server(
                #"{"msg":"changed","collection":"c","id":"wide","cleared":["f\#(number)"]}"#)
        }
        #expect(model.done() == [])
        model.server(#"{"msg":"changed","collection":"c","id":"wide","cleared":["f"]}"#)
        #expect(model.done().count == 1)
    }

    @Test func readyIsReportedOnce() {
        let model = DDPModel.connected()
        let handle = model.subscribe("all", [["a": 1]])
        #expect(model.done() == [#"> sub s1 all [{"a":1}]"#])
        #expect(!model.session.isReady(handle))
        model.ready("s1")
        #expect(model.done() == ["ready 1"])
        #expect(model.session.isReady(handle))
        model.ready("s1", "unknown")
        #expect(model.done() == [])
    }

    @Test func whatWasReceivedIsThereWhenASubscriptionIsReady() {
        let model = DDPModel.connected { $0.bufferInterval = .seconds(1) }
        _ = model.subscribe("all")
        model.added("a")
        _ = model.done()
        model.ready("s1")
        #expect(model.done() == ["a {}", "ready 1"])
    }

    @Test func aSubscriptionWithoutAConnectionIsSentLater() {
        let model = DDPModel()
        _ = model.subscribe("early")
        model.session.connect(now: model.now)
        _ = model.done()
        model.open()
        #expect(model.done() == ["> connect 1", "> sub s1 early []"])
        // Also before the server has confirmed the connection.
        _ = model.subscribe("between")
        #expect(model.done() == ["> sub s2 between []"])
    }

    @Test func aRefusedSubscriptionHasTheError() {
        let model = DDPModel.connected()
        _ = model.subscribe("no")
        _ = model.done()
        model.server(#"{"msg":"nosub","id":"s1","error":{"error":404}}"#)
        #expect(model.done() == ["stopped 1 404"])
        // It is not sent again, and the next one begins anew.
        #expect(model.reopen() == ["> connect 1 S 2"])
        _ = model.subscribe("no")
        #expect(model.done() == ["> sub s2 no []"])
    }

    @Test func equalSubscriptionsAreShared() {
        let model = DDPModel.connected()
        let first = model.subscribe("all", [1, ["a": 1, "b": 2]])
        let second = model.subscribe("all", [1, ["b": 2, "a": 1]])
        #expect(model.done() == [#"> sub s1 all [1,{"a":1,"b":2}]"#])
        model.ready("s1")
        #expect(model.done() == ["ready 1", "ready 2"])
        // One more is ready at once.
        _ = model.subscribe("all", [1, ["a": 1, "b": 2]])
        #expect(model.done() == ["ready 3"])
        model.session.stop(first, now: model.now)
        model.session.stop(second, now: model.now)
        #expect(model.done() == [])
        // Other parameters or another name are others.
        _ = model.subscribe("all", [2])
        _ = model.subscribe("every", [1, ["a": 1, "b": 2]])
        #expect(model.done().count == 2)
    }

    @Test func theErrorOfASharedSubscriptionReachesAll() {
        let model = DDPModel.connected()
        _ = model.subscribe("no")
        _ = model.subscribe("no")
        _ = model.done()
        model.server(#"{"msg":"nosub","id":"s1","error":{"error":403}}"#)
        #expect(model.done() == ["stopped 1 403", "stopped 2 403"])
    }

    @Test func anUnusedSubscriptionIsKeptForAWhile() {
        let model = DDPModel.connected { $0.heartbeatInterval = .zero }
        let first = model.subscribe("all")
        model.ready("s1")
        model.session.release(first, now: model.now)
        _ = model.done()
        model.pass(.seconds(179))
        #expect(model.done() == [])
        // Used again, its time begins anew.
        let second = model.subscribe("all")
        #expect(model.done() == ["ready 2"])
        model.pass(.seconds(600))
        model.session.release(second, now: model.now)
        model.pass(.seconds(179))
        #expect(model.done() == [])
        model.pass(.seconds(1))
        #expect(model.done() == ["> unsub s1"])
        // The answer is silent.
        model.server(#"{"msg":"nosub","id":"s1"}"#)
        #expect(model.done() == [])
    }

    @Test func eachSubscriptionHasItsOwnTime() {
        let model = DDPModel.connected { $0.heartbeatInterval = .zero }
        let long = model.subscribe("long", keep: .seconds(5))
        let short = model.subscribe("short", keep: .seconds(2))
        model.session.release(long, now: model.now)
        model.session.release(short, now: model.now)
        _ = model.done()
        model.pass(.seconds(2))
        #expect(model.done() == ["> unsub s2"])
        model.pass(.seconds(3))
        #expect(model.done() == ["> unsub s1"])
    }

    @Test func onlyTheLastReleaseCounts() {
        let model = DDPModel.connected()
        let first = model.subscribe("all", keep: .zero)
        let second = model.subscribe("all", keep: .zero)
        _ = model.done()
        model.session.release(first, now: model.now)
        model.session.release(first, now: model.now)
        #expect(model.done() == [])
        model.session.release(second, now: model.now)
        #expect(model.done() == ["> unsub s1"])
    }

    @Test func anEndPrecedesTheNextBegin() {
        let model = DDPModel.connected()
        let first = model.subscribe("all", [1])
        _ = model.done()
        model.session.stop(first, now: model.now)
        _ = model.subscribe("all", [1])
        #expect(model.done() == ["> unsub s1", "> sub s2 all [1]"])
    }

    @Test func whatEndedWithoutAConnectionEndsAtTheServer() {
        let model = DDPModel.connected()
        let handle = model.subscribe("all")
        model.lose()
        model.session.stop(handle, now: model.now)
        model.session.connect(now: model.now)
        _ = model.done()
        model.open()
        #expect(model.done() == ["> connect 1 S 1", "> unsub s1"])
    }

    /// To place documents takes time for all of them, so a server cannot ask for that with each
    /// message. Nobody waits for this `ready`.
    @Test(arguments: [100, 10_000])
    func placesInLargeCollectionsWait(count: Int) {
        let model = DDPModel.connected { $0.bufferInterval = .milliseconds(5) }
        for number in 0..<count { model.added("\(number)") }
        model.pass(.milliseconds(5))
        _ = model.subscribe("all")
        _ = model.done()
        let place = #"{"msg":"movedBefore","collection":"c","id":"9","before":"5"}"#
        model.server(place, #"{"msg":"ready","subs":["unknown"]}"#)
        #expect(model.session.store.isBuffering == (count > 1_000))
        model.server(place)
        model.ready("s1")
        #expect(!model.session.store.isBuffering)
        #expect(model.done().contains("ready 1"))
    }

    /// Work that grew with the square of their number would take minutes.
    @Test(.timeLimit(.minutes(5))) func manyEndsAreAnswered() {
        let count = 50_000
        let model = DDPModel.connected()
        let handles = (0..<count).map { model.subscribe("all", [.number(Double($0))]) }
        for handle in handles { model.session.stop(handle, now: model.now) }
        #expect(model.done().count { $0.hasPrefix("> unsub") } == count)
        for number in 1...count { model.server(#"{"msg":"nosub","id":"s\#(number)"}"#) }
        #expect(model.done() == [])
    }

    /// A server that answers nothing must not fill the memory.
    @Test func endsThatAreNotAnsweredAreLimited() {
        let model = DDPModel.connected()
        for number in 0...DDPConfiguration.unansweredLimit {
            let handle = model.subscribe("all", [.number(Double(number))])
            model.session.stop(handle, now: model.now)
        }
        _ = model.done()
        _ = model.reopen()
        model.confirm("S")
        model.pass(DDPConfiguration.answerTimeout)
        let repeated = model.done().count { $0.hasPrefix("> unsub") }
        #expect(repeated == DDPConfiguration.unansweredLimit)
    }

    @Test func aStopOfTheServerIsReported() {
        let model = DDPModel.connected()
        let handle = model.subscribe("all")
        model.ready("s1")
        _ = model.done()
        model.server(#"{"msg":"nosub","id":"s1"}"#)
        #expect(model.done() == ["stopped 1 "])
        #expect(!model.session.isReady(handle))
    }

    @Test func aGroupReportsItsFirstError() {
        let model = DDPModel.connected()
        let loader = model.session.makeLoader()
        for name in ["a", "b", "c"] { model.session.add(model.subscribe(name), to: loader) }
        let isReady = model.session.whenReady(loader)
        #expect(!isReady)
        model.server(
            #"{"msg":"nosub","id":"s2","error":{"error":401}}"#,
            #"{"msg":"nosub","id":"s1","error":{"error":404}}"#)
        model.ready("s3")
        #expect(model.done().last == "loaded 401")
        #expect(model.session.error(of: loader)?.code == "401")
    }

    @Test func aGroupIsLoadedWhenAllAreReadyOrRefused() {
        let model = DDPModel.connected()
        let loader = model.session.makeLoader()
        for name in ["a", "b"] { model.session.add(model.subscribe(name), to: loader) }
        var isReady = model.session.whenReady(loader)
        #expect(!isReady)
        _ = model.done()
        model.server(#"{"msg":"nosub","id":"s1","error":{"error":404}}"#)
        #expect(model.done() == ["stopped 1 404"])
        model.ready("s2")
        #expect(model.done() == ["ready 2", "loaded 404"])
        isReady = model.session.whenReady(loader)
        #expect(isReady)
    }
}
