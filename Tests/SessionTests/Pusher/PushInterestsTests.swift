import Session
import Testing
import Wire

/// The registration for push notifications, and the calls about interests.
struct PushInterestsTests {
    private final class Model {
        var session = PushInterestsSession(key: "KEY", baseURL: "https://push.example.com/v1")
        var now = Instant(nanoseconds: 1_000_000_000_000)
        /// The numbers of the requests, in their order.
        private(set) var numbers: [UInt64] = []

        func done() -> [String] {
            var result: [String] = []
            while let action = session.nextAction() {
                switch action {
                case .request(let number, let request):
                    numbers.append(number)
                    let path = request.url.dropFirst("https://push.example.com/v1".count)
                    result.append("\(request.method) \(path)")
                case .cancel: result.append("cancel")
                case .registered(let id): result.append("registered \(id)")
                case .registrationFailed(let error):
                    result.append("not registered \(error.code)")
                case .done(let call): result.append("done \(Self.name(call))")
                case .failed(let call, let error):
                    result.append("failed \(Self.name(call)) \(error.code)")
                }
            }
            return result
        }

        private static func name(_ call: PushInterestsSession.Call) -> String {
            switch call {
            case .subscribe(let name): "+\(name)"
            case .unsubscribe(let name): "-\(name)"
            case .setSubscriptions(let names): "=\(names.joined(separator: ","))"
            }
        }

        func register() -> [String] {
            session.register(token: [0xAB, 0x01], platform: "apns")
            return done()
        }

        func call(_ call: PushInterestsSession.Call) -> [String] {
            session.call(call)
            return done()
        }

        func answer(_ body: String = "{}", _ number: UInt64? = nil) -> [String] {
            session.answered(
                number ?? numbers.last ?? 0, .success(Array(body.utf8)), now: now)
            return done()
        }

        func fail(_ code: RealtimeError.Code = .connect) -> [String] {
            session.answered(numbers.last ?? 0, .failure(RealtimeError(code, "no")), now: now)
            return done()
        }

        func pass() throws -> (wait: Duration, done: [String]) {
            let due = try #require(session.wakeUp)
            let wait = due - now
            now = due
            session.timeReached(now)
            return (wait, done())
        }

        func registered() -> Model {
            _ = register()
            _ = answer(#"{"id":"c-1"}"#)
            return self
        }
    }

    @Test func `the device is registered`() {
        let model = Model()
        #expect(model.register() == ["POST /clients"])
        #expect(model.answer(#"{"id":"c-1","platform_type":"apns"}"#) == ["registered c-1"])
        #expect(model.session.clientID == "c-1")
    }

    @Test(arguments: ["{}", #"{"id":7}"#, "nonsense", ""])
    func `a reply without a client id is a failure`(body: String) {
        let model = Model()
        _ = model.register()
        #expect(model.answer(body) == ["not registered protocolViolation"])
    }

    @Test func `a registration that fails is reported`() {
        let model = Model()
        _ = model.register()
        #expect(model.fail(.httpStatus) == ["not registered httpStatus"])
        _ = model.register()
        #expect(model.fail(.connect) == ["not registered connect"])
    }

    @Test func `calls are made one after the other`() {
        let model = Model().registered()
        #expect(model.call(.subscribe("a")) == ["POST /clients/c-1/interests/a"])
        #expect(model.call(.unsubscribe("b c")) == [])
        #expect(model.call(.setSubscriptions(["x", "y"])) == [])
        #expect(model.answer() == ["done +a", "DELETE /clients/c-1/interests/b%20c"])
        #expect(model.answer() == ["done -b c", "PUT /clients/c-1/interests/"])
        #expect(model.answer() == ["done =x,y"])
        #expect(model.session.wakeUp == nil)
    }

    @Test func `calls before the registration wait for it`() {
        let model = Model()
        #expect(model.call(.subscribe("a")) == [])
        _ = model.register()
        #expect(
            model.answer(#"{"id":"c-1"}"#) == [
                "registered c-1", "POST /clients/c-1/interests/a",
            ])
    }

    @Test func `a call is made six times, and the queue goes on after it`() throws {
        let model = Model().registered()
        _ = model.call(.subscribe("a"))
        _ = model.call(.subscribe("b"))
        for seconds in [1, 4, 9, 16, 25] {
            #expect(model.fail() == [])
            let (wait, done) = try model.pass()
            #expect(wait == .seconds(seconds))
            #expect(done == ["POST /clients/c-1/interests/a"])
        }
        #expect(model.fail() == ["failed +a connect", "POST /clients/c-1/interests/b"])
        #expect(model.fail() == [])
        #expect(try model.pass().wait == .seconds(1))
        #expect(model.answer() == ["done +b"])
    }

    @Test func `a new registration does not repeat a call in flight, or bring it forward`() throws {
        let model = Model().registered()
        _ = model.call(.subscribe("a"))
        _ = model.fail()
        _ = model.register()
        #expect(model.answer(#"{"id":"c-2"}"#) == ["registered c-2"])
        #expect(try model.pass().done == ["POST /clients/c-2/interests/a"])
    }

    @Test func `a registration in progress is replaced`() {
        let model = Model()
        _ = model.register()
        #expect(model.register() == ["cancel", "POST /clients"])
        #expect(model.answer(#"{"id":"old"}"#, model.numbers[0]) == [])
        #expect(model.answer(#"{"id":"new"}"#) == ["registered new"])
    }

    @Test func `the queue has a limit`() {
        let model = Model()
        for _ in 0..<PushInterestsSession.queueLimit { _ = model.call(.subscribe("a")) }
        #expect(model.call(.subscribe("b")) == ["failed +b queueFull"])
    }

    @Test func `after the close nothing is left`() {
        let model = Model().registered()
        _ = model.call(.subscribe("a"))
        _ = model.call(.subscribe("b"))
        model.session.close()
        #expect(model.done() == ["cancel"])
        #expect(model.answer() == [])
        #expect(model.session.wakeUp == nil)
    }
}
