import Session

/// A Pusher connection with servers of every dialect, connections that end at any point, late
/// authorizations, and a user who may do anything at any time.
package enum PusherScenario: Scenario {
    package static let name = "pusher"
    package static let seeds: UInt64 = 10_000

    package static var situations: [String] {
        [
            "gentle", "pusher", "soketi", "reverb", "sockudo", "fake", "connected", "reconnects",
            "waits for the network", "connects without a network", "ended for good", "upgraded",
            "no pong", "ping", "stalled", "slow uplink",
            "ended by the server", "failed to open", "delivered", "decrypted", "cannot decrypt",
            "key requested", "batch", "not authorized", "answered too late",
            "refused by the server", "not answered", "refused without a name",
            "subscribed again", "subscribed after a pong", "subscribed without a pong",
            "pings not answered",
            "subscription failed", "member added", "member removed",
            "signed in", "signed in late", "sign-in failed", "user event", "watchlist",
            "client event dropped",
            "client events at the limit", "client events arrived", "error",
            "acted in a callback", "converged",
        ]
    }

    package static func run(in world: World) {
        do {
            let run = try PusherRun(world)
            run.begin()
            world.run(until: world.now + .seconds(7200))
            if world.violation == nil { run.verify() }
            run.release()
        } catch {
            world.fail("the options are refused: \(error)")
        }
    }
}
