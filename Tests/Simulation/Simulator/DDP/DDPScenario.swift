import Session

/// A Meteor client with servers of every age, connections that end at any point, and a user who may
/// call, subscribe, write and observe at any time.
package enum DDPScenario: Scenario {
    package static let name = "ddp"
    package static let seeds: UInt64 = 10_000

    package static var situations: [String] {
        [
            "gentle", "connected", "reconnects", "another version", "no common version",
            "resumed", "not resumed", "ended by the server", "stalled", "failed to open",
            "failed for good", "ping", "no pong", "ping of the server", "completed",
            "call failed on the server", "call abandoned", "call timed out", "call disconnected",
            "stub threw", "resent", "resent and run twice", "wait", "nested", "ready at once",
            "shared", "reused", "expired", "refused subscription", "brief subscription",
            "loaded", "background", "waits for the network", "connects without a network",
            "acted in a callback", "emptied", "observed", "moved", "drew the same id", "equal",
            "too much queued", "logged in", "logged out", "logged in at the end",
            "logged out by the server", "too many logins", "stable", "ended before it was stable",
            "token refused", "converged", "greeted", "called while greeting",
            "slow uplink", "answered a slow ping",
            "wrote during a reset", "wrote a former document", "kept the user's document",
            "flushed in parts",
        ]
    }

    package static func run(in world: World) {
        let run = DDPRun(world)
        run.begin()
        world.run(until: world.now + .seconds(7200))
        if world.violation == nil { run.verifyEnd() }
        run.release()
    }
}
