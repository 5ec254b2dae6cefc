import Session
import Testing
import Wire

/// Meteor servers may quote the parameters of a login in their errors.
struct DDPSecretsTests {
    private let token = "S3cret-resume-token"

    private func failure(of model: DDPModel, _ call: Int = 1) throws -> DDPError {
        while let action = model.session.nextAction() {
            if case .report(.completed(_, .failure(let error))) = action { return error }
        }
        throw RealtimeError(.notFound, "no call has failed")
    }

    private func refuse(_ model: DDPModel, quoting text: String) {
        model.refuse(1, #"{"error":403,"reason":"bad \#(text)","details":{"a":["\#(text)"]}}"#)
        model.updated(1)
    }

    @Test func theTokenOfALoginIsLeftOutOfItsError() throws {
        let model = DDPModel.connected()
        _ = model.session.logIn(.login(token: token), now: model.now)
        refuse(model, quoting: token)
        let error = try failure(of: model)
        #expect(error.reason == "bad …" && error.details?.text == #"{"a":["…"]}"#)
        #expect(error.code == "403" && !error.source.contains(token))
    }

    @Test func thePasswordsDigestAndTheResetTokenAreToo() throws {
        let request = try DDPRequest.resetPassword(token: token, to: "new")
        guard case .object(let fields) = request.params[1],
            case .string(let digest)? = fields["digest"]
        else { throw RealtimeError(.notFound, "no digest") }
        for secret in [token, digest] {
            let model = DDPModel.connected()
            _ = model.session.logIn(request, now: model.now)
            refuse(model, quoting: secret)
            #expect(try failure(of: model).reason == "bad …")
        }
    }

    @Test func theMethodsOfAccountsCountHoweverTheyAreCalled() throws {
        let model = DDPModel.connected()
        model.call("verifyEmail", [.string(token)])
        refuse(model, quoting: token)
        #expect(try failure(of: model).reason == "bad …")
        // A parameter of another method is the program's.
        let other = DDPModel.connected()
        other.call("verify", [.string(token)])
        refuse(other, quoting: token)
        #expect(try failure(of: other).reason == "bad \(token)")
    }

    @Test func aRefusalAndTheEndOfTheConnectionDoNotShowIt() {
        let model = DDPModel.connected()
        model.session.wantsLog = true
        _ = model.session.logIn(.login(token: token), now: model.now)
        _ = model.done()
        model.server(
            #"{"msg":"error","reason":"bad \#(token)","offendingMessage":{"a":"\#(token)"}}"#)
        model.end(DDPSocketEnd(closeCode: 4000, reason: "bad \(token)"))
        var refusals = 0
        while let action = model.session.nextAction() {
            switch action {
            case .report(.refused(let reason, let offending)):
                refusals += 1
                #expect(reason == "bad …")
                #expect(offending.map { String(decoding: $0, as: UTF8.self) } == #"{"a":"…"}"#)
            case .report(.status(let change)):
                #expect(change.error?.message.contains(token) != true)
            case .report(.log(let line)): #expect(!line.contains(token))
            default: break
            }
        }
        #expect(refusals == 1)
    }
}
