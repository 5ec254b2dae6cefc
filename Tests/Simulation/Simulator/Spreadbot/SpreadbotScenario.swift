import Session

/// A Spreadbot session with a server whose legs fail in every way, tokens that expire, and a user
/// who may do anything at any time (B4 to B15).
package enum SpreadbotScenario: Scenario {
    package static let name = "spreadbot"
    package static let seeds: UInt64 = 5000

    package static var situations: [String] {
        [
            "gentle", "message", "repeat dropped", "history forgotten", "gone", "offline",
            "outage", "another round", "the last round", "stalled", "paused", "by WebSocket",
            "by SSE", "by long poll", "token refused",
            "tokens refreshed", "refreshed ahead", "refresh lost", "refresh refused",
            "a refresh came too late",
            "a refresh token came too late", "request refused", "probe opened", "probe failed",
            "probe unauthorized", "refreshed for a probe",
            "disconnected", "disconnected, reconnectsExhausted", "disconnected, auth",
            "sent, durable", "sent, fleeting", "posted", "post lost", "post refused",
            "send queueFull", "send connectionLost", "send closed", "send cancelled",
            "acted in a callback", "all sends ended", "WebSocket new unfit",
            "WebSocket open unfit", "WebSocket new unreachable", "WebSocket open unreachable",
            "WebSocket open unauthorized", "WebSocket open refused", "SSE new unfit",
            "SSE open unreachable", "long poll new refused", "long poll open unauthorized",
        ]
    }

    package static func run(in world: World) {
        do {
            let run = try SpreadbotRun(world)
            run.begin()
            world.run(until: world.now + .seconds(7200))
            if world.violation == nil { run.verify() }
            run.dropLeg()
        } catch {
            world.fail("the options are refused: \(error)")
        }
    }
}
