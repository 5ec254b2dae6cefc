import Documents
import Session
import Testing
import Wire

/// The document of the user who is logged in stays when the client connects again.
struct DDPOwnDocumentTests {
    private let user = #"{"id":"u","token":"T"}"#

    /// A client whose user is logged in, and whose server has sent the user's document.
    private func loggedIn() -> DDPModel {
        let model = DDPModel.connected()
        model.logIn()
        answerLogin(1, model)
        added(#"{"username":"ada","old":1}"#, model)
        model.added("a")
        _ = model.done()
        return model
    }

    private func answerLogin(_ call: Int, _ model: DDPModel) {
        model.result(call, user)
        model.updated(call)
    }

    private func added(_ fields: String, _ model: DDPModel) {
        model.server(#"{"msg":"added","collection":"users","id":"u","fields":\#(fields)}"#)
    }

    private func removed(_ model: DDPModel) {
        model.server(#"{"msg":"removed","collection":"users","id":"u"}"#)
    }

    private func name(_ model: DDPModel) -> EJSON? {
        model.session.userDocument?.fields["username"]
    }

    /// What was reported about documents.
    private func changes(_ model: DDPModel) -> [String] {
        model.done().filter { $0.hasSuffix("gone") || $0.hasSuffix("}") && !$0.contains(" 2 ") }
    }

    @Test func aNewSessionSendsItAfterTheLogin() {
        let model = loggedIn()
        _ = model.reopen()
        model.confirm("T")
        #expect(changes(model) == [])
        answerLogin(2, model)
        // The others are those of the new session at once.
        #expect(changes(model) == ["a gone"])
        #expect(name(model) == "ada")
        model.pass(.milliseconds(999))
        added(#"{"username":"ada"}"#, model)
        // No field of the old one remains.
        #expect(changes(model) == [#"u {"username":"ada"}"#])
        model.pass(.seconds(60))
        #expect(name(model) == "ada")
    }

    @Test func oneThatHasNotChangedIsNotReported() {
        let model = loggedIn()
        _ = model.reopen()
        model.confirm("T")
        answerLogin(2, model)
        _ = model.done()
        added(#"{"username":"ada","old":1}"#, model)
        model.pass(.seconds(60))
        #expect(changes(model) == [])
    }

    @Test func aSubscriptionMaySendItBeforeTheLogin() {
        let model = loggedIn()
        _ = model.subscribe("everybody")
        model.ready("s1")
        _ = model.reopen()
        model.confirm("T")
        added(#"{"username":"ada"}"#, model)
        // Then the login publishes it anew.
        removed(model)
        answerLogin(2, model)
        model.ready("s1")
        #expect(Set(changes(model)) == [#"u {"username":"ada"}"#, "a gone"])
        added(#"{"username":"ada","more":1}"#, model)
        #expect(changes(model) == [#"u {"username":"ada","more":1}"#])
    }

    /// Meteor 3.5 removes and adds it when a session that it has kept logs in again.
    @Test(arguments: [true, false]) func aKeptSessionReplacesIt(isLate: Bool) {
        let model = loggedIn()
        _ = model.reopen()
        model.confirm("S")
        removed(model)
        if !isLate { added(#"{"username":"bob"}"#, model) }
        answerLogin(2, model)
        if isLate {
            #expect(changes(model) == [])
            #expect(name(model) == "ada")
            added(#"{"username":"bob"}"#, model)
        }
        #expect(changes(model) == [#"u {"username":"bob"}"#])
    }

    @Test(arguments: ["S", "T"]) func oneThatDoesNotComeIsGoneAfterAMoment(session: String) {
        let model = loggedIn()
        _ = model.reopen()
        model.confirm(session)
        if session == "S" { removed(model) }
        answerLogin(2, model)
        _ = model.done()
        model.pass(.milliseconds(999))
        #expect(name(model) == "ada")
        model.pass(.milliseconds(1))
        #expect(changes(model) == ["u gone"])
        #expect(model.session.userDocument == nil)
    }

    @Test func itStaysWithoutAConnection() {
        let model = loggedIn()
        _ = model.reopen()
        model.confirm("T")
        answerLogin(2, model)
        model.lose()
        model.session.disconnect(now: model.now)
        model.pass(.seconds(3600))
        #expect(name(model) == "ada")
    }

    @Test func itGoesWithItsUser() {
        let model = loggedIn()
        _ = model.reopen()
        model.confirm("T")
        model.refuse(2)
        model.updated(2)
        let lines = model.done()
        let gone = lines.firstIndex(of: "u gone")
        let loggedOut = lines.firstIndex(of: "user none")
        #expect(gone != nil && loggedOut != nil && gone ?? 0 < loggedOut ?? 0)
        #expect(model.session.userDocument == nil)
    }

    @Test func aRemovalWithoutALoginCounts() {
        let model = loggedIn()
        model.pass(.seconds(1))
        removed(model)
        #expect(changes(model) == ["u gone"])
    }

    @Test func itIsWaitedForWhileTheServerAllowsNoLogin() {
        let model = loggedIn()
        _ = model.reopen()
        model.confirm("T")
        model.refuse(2, #"{"error":"too-many-requests","details":{"timeToReset":5000}}"#)
        model.updated(2)
        model.pass(.seconds(5))
        #expect(name(model) == "ada")
        answerLogin(3, model)
        added(#"{"username":"ada"}"#, model)
        #expect(name(model) == "ada")
    }

    /// Also if the one before has failed.
    @Test func itIsWaitedForAsLongAsALoginLasts() {
        let model = loggedIn()
        model.logIn()
        model.refuse(2)
        model.updated(2)
        model.logIn()
        removed(model)
        model.pass(.seconds(10))
        #expect(name(model) == "ada")
        answerLogin(3, model)
        added(#"{"username":"ada"}"#, model)
        model.pass(.seconds(10))
        #expect(name(model) == "ada")
    }

    @Test func aStubMayHaveWrittenIt() {
        let model = loggedIn()
        _ = model.reopen()
        model.confirm("T")
        model.stub = { session, _ in
            let count = try? session.updateInStub("users", "u", ["$set": ["username": "eve"]])
            return .success(.number(Double(count ?? 0)))
        }
        model.call("stub")
        answerLogin(2, model)
        model.result(3)
        model.updated(3)
        #expect(name(model) == "eve")
        added(#"{"username":"bob"}"#, model)
        #expect(name(model) == "bob")
    }
}
