import Testing
import Wire

@testable import Session

/// B9, row by row.
@Suite struct SpreadbotOutcomeTests {
    private func outcome(
        _ code: RealtimeError.Code = .connectionLost, status: Int = 0, close: UInt16? = nil,
        reached: Bool = false, of transport: SpreadbotTransport, wasOpen: Bool = false,
        isLast: Bool = false, elsewhere: Bool = false
    ) -> SpreadbotOutcome {
        let end = SpreadbotLegEnd(
            error: RealtimeError(code, "x"), status: status,
            closeCode: close.map { CloseCode(rawValue: $0) }, reachedServer: reached)
        return SpreadbotOutcome(
            end, of: transport, wasOpen: wasOpen, isLast: isLast, goesElsewhere: elsewhere)
    }

    private static let passing = [408, 425, 429, 500, 502, 503, 504]

    @Test(arguments: SpreadbotTransport.allCases) func passingStatusesAreUnreachable(
        _ transport: SpreadbotTransport
    ) {
        for status in SpreadbotOutcomeTests.passing {
            #expect(outcome(.httpStatus, status: status, of: transport) == .unreachable)
        }
    }

    @Test(arguments: SpreadbotTransport.allCases) func otherFinalStatusesAreUnsupported(
        _ transport: SpreadbotTransport
    ) {
        for status in [200, 204, 301, 400, 403, 404, 405, 410, 426, 501, 505, 599] {
            #expect(outcome(.httpStatus, status: status, of: transport) == .unsupported)
        }
    }

    @Test(arguments: SpreadbotTransport.allCases) func refusedCredentialsAreUnauthorized(
        _ transport: SpreadbotTransport
    ) {
        for status in [401, 407] {
            #expect(outcome(.httpStatus, status: status, of: transport) == .unauthorized)
        }
    }

    /// A proxy that opens no tunnel; 407 asks for credentials.
    @Test(arguments: SpreadbotTransport.allCases) func refusedTunnelsAreUnsupported(
        _ transport: SpreadbotTransport
    ) {
        for (status, expected) in [
            (403, SpreadbotOutcome.unsupported), (405, .unsupported), (502, .unsupported),
            (407, .unauthorized),
        ] {
            let refusal = HTTPResponse(ResponseHead(status: status), body: [])
            let end = SpreadbotLegEnd(
                error: RealtimeError(.proxy, "x", response: refusal), status: status)
            let outcome = SpreadbotOutcome(
                end, of: transport, wasOpen: false, isLast: false, goesElsewhere: false)
            #expect(outcome == expected, "\(status)")
        }
    }

    @Test(arguments: SpreadbotTransport.allCases) func forbiddenOnTheLastLegIsRefused(
        _ transport: SpreadbotTransport
    ) {
        for status in [403, 404] {
            #expect(
                outcome(.httpStatus, status: status, of: transport, isLast: true) == .refused)
            #expect(outcome(.httpStatus, status: status, of: transport) == .unsupported)
        }
        #expect(outcome(.httpStatus, status: 405, of: transport, isLast: true) == .unsupported)
    }

    @Test(arguments: SpreadbotTransport.allCases) func connectionErrorsAreUnreachable(
        _ transport: SpreadbotTransport
    ) {
        for code in [RealtimeError.Code.resolve, .connect, .tls, .timeout, .proxy] {
            #expect(outcome(code, of: transport) == .unreachable)
        }
    }

    @Test func aWrongHandshakeIsUnsupported() {
        #expect(outcome(.handshake, status: 101, reached: true, of: .webSocket) == .unsupported)
        #expect(outcome(.handshake, reached: true, of: .webSocket) == .unsupported)
        #expect(outcome(.protocolViolation, reached: true, of: .webSocket) == .unsupported)
        #expect(outcome(.redirect, reached: true, of: .webSocket) == .unsupported)
    }

    @Test func anUnansweredHandshakeIsUnsupported() {
        for code in [RealtimeError.Code.timeout, .connectionLost] {
            #expect(outcome(code, reached: true, of: .webSocket) == .unsupported)
            #expect(outcome(code, reached: false, of: .webSocket) == .unreachable)
        }
    }

    @Test func aStreamWithoutAHeadInTimeIsUnsupported() {
        #expect(outcome(.timeout, reached: true, of: .sse) == .unsupported)
        #expect(outcome(.timeout, reached: false, of: .sse) == .unreachable)
        #expect(outcome(.connectionLost, reached: true, of: .sse) == .unreachable)
        #expect(outcome(.timeout, reached: true, of: .poll) == .unreachable)
    }

    @Test func aStreamOfAnotherTypeIsUnsupported() {
        #expect(outcome(.contentType, status: 200, reached: true, of: .sse) == .unsupported)
        #expect(outcome(.noContent, status: 204, reached: true, of: .sse) == .unsupported)
        #expect(
            outcome(.contentType, status: 200, reached: true, of: .poll, wasOpen: true)
                == .unsupported)
    }

    @Test(arguments: [1002, 1003, 1007, 1009, 1010] as [UInt16])
    func closeCodesThatTellOfAMisfitAreUnsupported(_ code: UInt16) {
        for isOpen in [false, true] {
            #expect(
                outcome(.protocolViolation, close: code, of: .webSocket, wasOpen: isOpen)
                    == .unsupported)
        }
    }

    @Test func closeCodesForCredentialsAndRefusals() {
        for code in [3000, 4401] as [UInt16] {
            #expect(outcome(close: code, of: .webSocket, wasOpen: true) == .unauthorized)
        }
        for code in [1008, 3003, 4403] as [UInt16] {
            #expect(outcome(close: code, of: .webSocket, wasOpen: true) == .refused)
        }
    }

    @Test(arguments: [1000, 1001, 1005, 1006, 1011, 1012, 1013, 3001, 4000, 4999] as [UInt16])
    func otherCloseCodesAreDropped(_ code: UInt16) {
        #expect(outcome(close: code, of: .webSocket, wasOpen: true) == .dropped)
    }

    @Test(arguments: SpreadbotTransport.allCases) func anOpenLegIsDropped(
        _ transport: SpreadbotTransport
    ) {
        let status = transport == .webSocket ? 101 : 200
        for code in [RealtimeError.Code.connectionLost, .timeout] {
            for head in [0, status] {
                #expect(
                    outcome(code, status: head, reached: true, of: transport, wasOpen: true)
                        == .dropped)
            }
        }
    }

    @Test func aPollThatFailsAfterAGoodOneIsDropped() {
        for status in SpreadbotOutcomeTests.passing {
            #expect(outcome(.httpStatus, status: status, of: .poll, wasOpen: true) == .dropped)
        }
        #expect(outcome(.connect, of: .poll, wasOpen: true) == .dropped)
        #expect(outcome(.httpStatus, status: 401, of: .poll, wasOpen: true) == .unauthorized)
        #expect(
            outcome(.httpStatus, status: 404, of: .poll, wasOpen: true, isLast: true) == .refused)
    }

    @Test func aRefusalByAnotherHostIsUnsupported() {
        #expect(outcome(.connect, of: .webSocket, elsewhere: true) == .unsupported)
        #expect(outcome(.connect, of: .webSocket, elsewhere: false) == .unreachable)
        #expect(outcome(.resolve, of: .webSocket, elsewhere: true) == .unreachable)
        #expect(outcome(.connect, of: .poll, wasOpen: true, elsewhere: true) == .dropped)
    }

    @Test func aMessageThatIsTooLargeIsUnsupported() {
        #expect(outcome(.tooLarge, status: 200, of: .sse) == .unsupported)
        #expect(outcome(.tooLarge, close: 1009, of: .webSocket, wasOpen: true) == .unsupported)
    }
}
