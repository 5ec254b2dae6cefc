import Session
import Testing
import Wire

@testable import Engine

/// The bodies of responses that a client keeps whole.
struct RESTBodyTests {
    private static let server = PeerServer("Tests/Support/pusher_server")

    /// A turn of the loop delivers a limited number of bytes to all clients together, so a body may
    /// have to wait for the next turn. Those with secrets were wiped meanwhile.
    @Test(arguments: [false, true]) func aBodyThatWaitsForTheNextTurnIsWhole(
        isSecret: Bool
    ) throws {
        let loop = try Loop()
        let rest = try RESTClient(base: RESTBodyTests.server.url, on: loop)
        defer {
            rest.close()
            loop.close()
        }
        let multi = try CurlMulti.of(loop)
        let builder = try RESTRequestBuilder(rest, "POST", "control/new_app")
        builder.policy.attemptTimeout = .seconds(60)
        var hasCome = false
        builder.handlers.progress = { hasCome = $0.received > 0 && $0.received == $0.toReceive }
        var result: RESTResult?
        builder.handlers.done = { result = $0 }
        builder.handlers.isSecret = isSecret
        try builder.send()
        while result == nil {
            // Until all of it has come, others use up the share of each turn.
            if !hasCome { multi.countDelivered(Loop.bytesPerTurn) }
            try loop.dispatch(timeout: 1000)
        }
        #expect(hasCome)
        let body = try #require(result).body.copy
        #expect(try JSONValue(parsing: body)["secret"]?.stringValue?.isEmpty == false)
    }
}
