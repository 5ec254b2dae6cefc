import Documents
import Session
import Testing
import Wire

/// What users of other DDP clients complained about. Where another suite has the test, HACKING.md
/// names it.
struct DDPComplaintTests {
    /// SwiftDDP 18, 19; Android-DDP 96, 107, 144; react-native-meteor 225.
    @Test(arguments: ["S", "T"])
    func subscriptionsReturnWithTheirParametersAfterAReconnectAndTheBackground(session: String) {
        let model = DDPModel.connected()
        _ = model.subscribe("list", ["a", ["limit": 5]])
        model.ready("s1")
        _ = model.done()
        let sub = #"> sub s1 list ["a",{"limit":5}]"#
        #expect(model.reopen() == ["> connect 1 S 2", sub])
        model.confirm(session)
        model.ready("s1")
        model.session.enterBackground(now: model.now)
        model.pass(.seconds(600))
        #expect(model.done().last == "offline")
        model.session.enterForeground(now: model.now)
        #expect(model.done() == ["connecting", "dial"])
        model.open()
        #expect(model.done().last == sub)
    }

    /// meteor-ios 116, 87; ObjectiveDDP 114.
    @Test func everythingMayBeDoneWhileTheConnectionIsClosed() {
        for isForGood in [false, true] {
            let model = DDPModel.connected()
            _ = model.subscribe("all")
            if isForGood {
                model.session.close(now: model.now)
            } else {
                model.session.disconnect(now: model.now)
            }
            _ = model.done()
            model.call("m")
            model.insert(["_id": "a"])
            let handle = model.subscribe("more", keep: .zero)
            model.session.release(handle, now: model.now)
            model.logIn()
            _ = model.session.logOut(now: model.now)
            model.server(#"{"msg":"ping"}"#)
            #expect(!model.done().contains { $0.hasPrefix(">") })
        }
    }

    /// react-native-meteor 16; meteor 1543; ObjectiveDDP 26, 172.
    @Test func aConnectionThatDiesSilentlyIsNoticed() {
        let model = DDPModel.connected()
        model.pass(.milliseconds(32_499))
        #expect(model.session.status == .connected)
        model.pass(.milliseconds(1))
        #expect(model.done() == ["> ping", "drop", "waiting"])
    }

    /// meteor 2466, 4298, 5432.
    @Test func aLargeDownloadKeepsTheConnection() {
        let model = DDPModel.connected()
        for number in 0..<60 {
            model.added("d\(number)")
            model.pass(.seconds(5))
        }
        // The server hears from us, although its own pings may wait behind the documents.
        let pings = model.done().filter { $0 == "> ping" }
        // An interval is 17.5 s, and a document later it is noticed that one has passed.
        #expect((13...17).contains(pings.count))
        #expect(model.session.status == .connected)
    }

    /// Android-DDP 96, 114.
    @Test func thereIsOneSocketAtATime() {
        let model = DDPModel.connected()
        model.session.connect(now: model.now)
        #expect(model.done() == [])
        model.session.reconnect(now: model.now)
        #expect(model.done() == ["drop", "connecting", "dial"])
        model.session.connect(now: model.now)
        #expect(model.done() == ["drop", "dial"])
        model.lose()
        model.session.networkChanged(isReachable: false, now: model.now)
        model.session.networkChanged(isReachable: true, now: model.now)
        model.pass(.milliseconds(10))
        #expect(model.done().filter { $0 == "dial" }.count == 1)
    }

    /// A server that accepts connections and ends them is not asked without pause.
    @Test func connectionsThatEndAtOnceAreNotRetriedInAStorm() {
        let model = DDPModel()
        model.session.connect(now: model.now)
        let end = model.now + .seconds(60)
        var dials = 0
        while model.now < end {
            dials += model.done().filter { $0 == "dial" }.count
            model.open()
            model.lose()
            model.pass((model.session.retryDue ?? end) - model.now)
        }
        #expect(dials <= 8)
    }

    /// meteor 1285, 2407, 2949.
    @Test func aCallThatMustNotRunTwiceIsSentOnce() {
        let model = DDPModel()
        model.call("pay") { $0.noRetry = true }
        model.session.connect(now: model.now)
        _ = model.done()
        model.open()
        // It was made without a connection, so this is the first time.
        #expect(model.done() == ["> connect 1", "> method 1 pay []"])
        model.confirm("S")
        #expect(model.reopen() == ["> connect 1 S 1", "result 1 invocation-failed"])
        model.confirm("T")
        #expect(model.done() == ["connected", "done 1 invocation-failed"])
        #expect(model.reopen() == ["> connect 1 T 1"])
    }

    /// meteor 3554, 9511, 14192; node-ddp-client 54; Rocket.Chat.js.SDK 61.
    @Test func callsEndAfterTheirTimeWithoutAConnection() {
        let model = DDPModel()
        model.call("m") { $0.timeout = .seconds(5) }
        model.pass(.seconds(5))
        #expect(model.done() == ["result 1 timeout", "done 1 timeout"])
        model.session.connect(now: model.now)
        _ = model.done()
        model.open()
        #expect(model.done() == ["> connect 1"])
    }

    @Test func callsEndWhenTheConnectionEndsForGood() {
        let model = DDPModel.connected { $0.mayReconnect = false }
        model.insert(["_id": "a"])
        model.call("later") { $0.isWait = true }
        _ = model.subscribe("all")
        _ = model.done()
        model.lose()
        #expect(
            model.done() == [
                "failed", "a gone", "result 1 disconnected", "done 1 disconnected",
                "result 2 disconnected", "done 2 disconnected", "stopped 1 disconnected",
            ])
        model.call("after")
        #expect(model.done() == ["result 3 disconnected", "done 3 disconnected"])
    }

    /// Android-DDP 23; react-native-meteor 285, 286, 302, 335; meteor 11450.
    @Test func theUserDoesNotFlickerWhileTheConnectionIsRenewed() {
        let model = DDPModel.connected()
        model.logIn()
        model.result(1, #"{"id":"u","token":"T"}"#)
        model.updated(1)
        _ = model.done()
        var lines = model.reopen()
        #expect(model.session.userID == "u")
        model.confirm("T")
        model.result(2, #"{"id":"u","token":"T"}"#)
        model.updated(2)
        lines += model.done()
        #expect(!lines.contains { $0.hasPrefix("user") || $0.hasPrefix("logg") })
        // A refusal, however, is not hidden.
        _ = model.reopen()
        model.confirm("V")
        model.refuse(3)
        model.updated(3)
        #expect(model.done().contains("user none"))
        #expect(model.session.userID == nil)
    }

    /// react-native-meteor 286.
    @Test func documentsDoNotFlickerAndNoneIsLeftBehind() {
        let model = DDPModel.connected()
        _ = model.subscribe("all")
        model.added("kept", #"{"n":1}"#)
        model.added("old")
        model.ready("s1")
        _ = model.reopen()
        model.confirm("T")
        model.added("kept", #"{"n":1}"#)
        _ = model.done()
        #expect(model.document("kept") != nil && model.document("old") != nil)
        model.ready("s1")
        #expect(model.done() == ["old gone"])
    }

    /// meteor 7874, PR 14766.
    @Test func aDocumentMayBeAddedTwice() {
        let model = DDPModel.connected()
        model.added("a", #"{"n":1,"m":2}"#)
        model.added("a", #"{"n":3}"#)
        model.server(#"{"msg":"added","collection":"c","id":"a"}"#)
        #expect(model.done() == [#"a {"n":1,"m":2}"#, #"a {"n":3,"m":2}"#])
        // Also while a stub's version of it is shown.
        model.set("a", 9)
        _ = model.done()
        model.server(#"{"msg":"added","collection":"c","id":"a"}"#)
        model.updated(1)
        #expect(model.done() == [#"a {"n":3,"m":2}"#])
    }

    /// meteor-ios 12, 13, 35, 50.
    @Test func documentsOfUndeclaredCollectionsAreKept() {
        let model = DDPModel.connected()
        model.server(#"{"msg":"added","collection":"other","id":"x","fields":{"n":1}}"#)
        #expect(model.done() == [#"x {"n":1}"#])
        #expect(model.session.store.count(of: "other") == 1)
    }

    /// meteor-ios 2.
    @Test(arguments: [
        ("plain", "plain"), ("-dash", "--dash"), ("~5", "-~5"), ("{x}", "-{x}"),
        ("0123456789abcdef01234567", "-0123456789abcdef01234567"),
    ])
    func idsComeBackAsTheyWereSent(id: String, wire: String) {
        let model = DDPModel.connected()
        #expect(model.insert(["_id": .string(id)]) == .string(id))
        #expect(model.done().first == "\(wire) {}")
        model.added(wire)
        model.updated(1)
        // It is the document that was inserted.
        #expect(model.done() == [])
        #expect(model.document(id) == "{}")
        model.server(#"{"msg":"removed","collection":"c","id":"\#(wire)"}"#)
        #expect(model.done() == ["\(wire) gone"])
    }

    /// meteor-ios 9, 70, 82; SwiftDDP 14.
    @Test func aSubscriptionEndsAtOnceIfAskedTo() {
        let model = DDPModel.connected()
        let handle = model.subscribe("room", [1])
        _ = model.done()
        model.session.stop(handle, now: model.now)
        #expect(model.done() == ["> unsub s1"])
        _ = model.subscribe("room", [2])
        #expect(model.done() == ["> sub s2 room [2]"])
    }

    /// meteor-ios 78; SwiftDDP 65.
    @Test func usersLogInByNameAndByOtherServices() throws {
        let model = DDPModel.connected()
        _ = model.session.logIn(try .login(user: "ada", password: "x"), now: model.now)
        #expect(model.done().last?.contains(#"{"user":{"username":"ada"}"#) == true)
        let mail = try DDPRequest.login(user: "ada@example.com", password: "x")
        #expect(EJSON.array(mail.params).text.contains(#"{"user":{"email":"ada@example.com"}"#))
        model.result(1, #"{"id":"u","token":"T"}"#)
        model.updated(1)
        _ = model.done()
        // Any method whose result has an id and a token.
        let secret: EJSON = ["oauth": ["credentialToken": "c", "credentialSecret": "s"]]
        _ = model.session.logIn(DDPRequest("login", [secret]), now: model.now)
        model.result(2, #"{"id":"v","token":"V"}"#)
        model.updated(2)
        #expect(model.session.userID == "v")
    }

    /// meteor-ios 18, 100.
    @Test func eachCallMayHaveAnotherStubWhoseValueIsReturned() {
        let model = DDPModel.connected()
        for value in [1, 2] as [EJSON] {
            model.stub = { _, _ in .success(value) }
            #expect(model.call("stub") == value)
        }
        #expect(model.done() == ["> method 1 stub []", "> method 2 stub []"])
    }

    /// meteor-ios 84; meteor PR 14051, 14527, 14647.
    @Test func aSessionIsResumedByItsNumberOfMessages() {
        let model = DDPModel.connected()
        model.added("a")
        // Pings are not counted, messages that mean nothing to us are.
        model.server(#"{"msg":"ping"}"#, #"{"msg":"pong"}"#, #"{"msg":"joke"}"#, "junk")
        _ = model.done()
        #expect(model.reopen() == ["> connect 1 S 3"])
        model.confirm("S")
        #expect(model.reopen() == ["> connect 1 S 4"])
        model.confirm("T")
        #expect(model.reopen() == ["> connect 1 T 1"])
        #expect(model.document("a") == nil)
    }

    // MARK: What a server can send

    @Test(arguments: [
        String(repeating: "[", count: 200) + String(repeating: "]", count: 200),
        String(repeating: "[", count: 20_000) + String(repeating: "]", count: 20_000),
        #"{"$type":"oid","$value":"zz"}"#, #"{"$binary":"&"}"#, "1e999",
    ])
    func aResultThatCannotBeReadEndsItsCall(result: String) {
        let model = DDPModel.connected()
        model.call("m")
        _ = model.done()
        model.updated(1)
        model.result(1, result)
        #expect(model.done() == ["result 1 invalid-result", "done 1 invalid-result"])
    }

    @Test func anErrorOfNullIsNone() {
        let model = DDPModel.connected()
        model.call("m")
        _ = model.done()
        model.server(#"{"msg":"result","id":"1","error":null,"result":5}"#)
        #expect(model.done() == ["result 1 5"])
    }

    @Test func halfASurrogatePairDoesNotLoseADocument() {
        let model = DDPModel.connected()
        model.added("a", #"{"text":"\ud800x"}"#)
        #expect(model.document("a") == "{\"text\":\"\u{FFFD}x\"}")
    }

    @Test func documentsUnderAStubCountAgainstTheLimit() {
        let model = DDPModel.connected()
        model.session.store = DocumentStore(maximumBytes: 1 << 20)
        model.session.declare("c")
        _ = model.insert(["_id": "a"])
        let text = String(repeating: "x", count: 100_000)
        for number in 0..<20 where model.session.status == .connected {
            let fields = #"{"f\#(number)":"\#(text)"}"#
            model.server(#"{"msg":"changed","collection":"c","id":"a","fields":\#(fields)}"#)
        }
        #expect(model.session.status == .failed)
    }

    @Test func aGroupOfAClientThatHasFailedIsNotLoaded() {
        let model = DDPModel.connected { $0.mayReconnect = false }
        model.lose()
        _ = model.done()
        let loader = model.session.makeLoader()
        let handle = model.subscribe("all")
        model.session.add(handle, to: loader)
        let isReady = model.session.whenReady(loader)
        #expect(isReady)
        let error = model.session.error(of: loader)
        #expect(error?.kind == .disconnected && error?.reason == "the client has failed: lost")
    }
}
