import Testing
import Wire

struct DDPErrorTests {
    /// The error of a result that contains this JSON.
    private func error(_ json: String) throws -> DDPError {
        var reader = DDPReader()
        let text = #"{"msg":"result","id":"1","error":\#(json)}"#
        let frame = Array(text.utf8).withUnsafeBytes { reader.read($0) }
        guard case .message(.result(_, .failure(let error))) = frame else {
            throw RealtimeError(.protocolViolation, "\(frame)")
        }
        return error
    }

    @Test func allMembersOfTheServersErrorAreThere() throws {
        let json = #"{"error":"not-found","reason":"There is none.","details":[1,"x"],"more":true}"#
        let error = try error(json)
        #expect(error.kind == .server && error.code == "not-found" && !error.codeIsNumber)
        #expect(error.reason == "There is none." && error.details == [1, "x"])
        #expect(error.source == json)
        #expect("\(error)" == "There is none. [not-found]")
    }

    @Test(arguments: [
        (#"{"error":403}"#, "403", true), (#"{"error":"403"}"#, "403", false),
        (#"{"error":4.5}"#, "4.5", true), (#"{"error":null}"#, "error", false),
        (#"{"error":1e400}"#, "error", false), (#"{}"#, "error", false), ("404", "404", true),
        (#""text""#, "text", false), ("true", "error", false), ("[1]", "error", false),
    ])
    func theCodeIsAText(json: String, code: String, isNumber: Bool) throws {
        let error = try error(json)
        #expect(error.code == code && error.codeIsNumber == isNumber)
        #expect(error.reason == nil && error.details == nil)
    }

    /// What looks like EJSON there is not.
    @Test func detailsArePlainJSON() throws {
        let error = try error(#"{"error":1,"details":{"$date":5}}"#)
        #expect(error.details == .object(["$date": 5]))
        #expect(error.details?.text == #"{"$escape":{"$date":5}}"#)
    }

    @Test(arguments: [
        (#"{"timeToReset":1500}"#, Duration.milliseconds(1500)), (#"{"timeToReset":-1}"#, .zero),
        (#"{"timeToReset":1e300}"#, .seconds(86_400)), (#"{"timeToReset":"x"}"#, .zero),
        ("5", .zero), ("null", .zero),
    ])
    func aLimitSaysWhenToTryAgain(details: String, time: Duration) throws {
        let limited = try error(#"{"error":"too-many-requests","details":\#(details)}"#)
        #expect(limited.timeToReset == time)
        #expect(try error(#"{"error":"other","details":\#(details)}"#).timeToReset == nil)
    }

    @Test func errorsOfStubsHaveNoSource() {
        let error = DDPError("no", reason: "Not today.", details: ["n": 1])
        #expect(error.kind == .stub && error.code == "no" && error.source == "")
        #expect("\(DDPError("no"))" == "no [no]")
    }

    @Test(arguments: [
        (DDPError.Kind.invocationFailed, "invocation-failed"), (.disconnected, "disconnected"),
        (.timeout, "timeout"), (.closed, "closed"),
    ])
    func ourOwnErrorsHaveACode(kind: DDPError.Kind, code: String) {
        #expect(DDPError(kind, reason: "why").code == code)
    }
}
