import Session
import Wire

/// A WebSocket against the scripted peer: handshake, messages in both directions, pings, and every
/// end.
package enum WebSocketScenario: Scenario {
    package static let name = "websocket"

    package static var situations: [String] {
        Misbehaviour.allCases.map { "caught \($0)" }
            + Plan.Greeting.allCases.map { "greeting \($0)" }
            + PeerDeflater.Manner.allCases.map { "deflate \($0)" }
            + ["cut", "reset", "stall", "corrupt", "swallow"].map { "fault \($0)" }
            + [.handshake, .httpStatus, .tooLarge, .timeout, .connectionLost].map {
                (code: RealtimeError.Code) in "handshake error \(code)"
            }
            + [
                "ended with 1000, clean", "ended with 1005, clean", "ended with 1002",
                "ended with 1006", "ended with 1007", "ended with 1009", "ended with 1011",
                "ended before its transport", "close timeout", "pong timeout",
                "silence after a ping", "part of a message", "idle timeout", "ping flood", "pause",
                "user closes",
                "peer closes", "peer resets", "garbage", "deliver first", "write failed",
                "user closes before a pending end", "send refused bufferFull", "gentle", "piece",
                "sends in pieces", "read directly", "inflated a turn's share",
            ]
    }

    package static func run(in world: World) {
        let plan: Plan
        do throws(RealtimeError) {
            plan = try Plan(&world.random)
        } catch {
            return world.fail("the plan is refused: \(error)")
        }
        trace(plan, in: world)
        world.count(plan.isGentle ? "gentle" : "harsh")
        let connection = Connection(in: world, up: plan.up, down: plan.down)
        let peer = Peer(world, plan, connection.server)
        let user = User(world, plan)
        let client = Client(world, plan, user, connection.client)
        let start = world.now
        client.start()
        user.start()
        // A link that swallows everything would never end: eventually the kernel gives up.
        world.after(plan.horizon + .seconds(1)) { connection.kill() }
        // All timers are shorter than this, and at the horizon the peer disconnects.
        world.run(until: start + plan.horizon + .seconds(60))
        guard world.violation == nil else { return }
        Verdict(world: world, plan: plan, user: user, client: client, peer: peer).check()
        world.require(world.isIdle, "events follow the end")
    }

    private static func trace(_ plan: Plan, in world: World) {
        world.trace("plan", plan.isGentle ? "gentle" : "harsh")
        world.trace("plan", "\(plan.configuration)")
        world.trace("plan", "up \(plan.up)")
        world.trace("plan", "down \(plan.down)")
        world.trace(
            "plan",
            "greeting \(plan.greeting), pongs \(plan.pongs), close answer \(plan.closeAnswer),"
                + " reading \(plan.reading); client reads \(plan.receiveBytes) bytes,"
                + " batches \(plan.usesBatches) of \(plan.batchSize)")
    }
}
