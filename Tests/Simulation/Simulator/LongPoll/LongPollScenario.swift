import Session

/// A server that holds polls or does not, answers with messages or nothing, fails in many ways, and
/// forgets. Every message must come once and in order, and each poll at the right time. One run in
/// eight is a storm: a server that wants to be polled as often as possible. Requests always stay
/// below a ceiling.
package enum LongPollScenario: Scenario {
    package static let name = "longpoll"

    package static var situations: [String] {
        [
            "message", "batch", "held", "answered at once", "empty 200", "refused", "asked to wait",
            "withdrawn", "malformed", "cut", "lost", "silent", "gone", "offline", "closed",
            "everything came", "validators", "headerID", "queryID",
            "stopped in the middle", "restarted", "storm", "storm refused", "ceiling reached",
        ]
    }

    package static func run(in world: World) {
        do {
            // From its own randomness, so that other runs draw the same as before there were
            // storms.
            var random = Random(seed: ~world.seed)
            if random.below(8) == 0 {
                try PollStorm(world, random.split()).run()
                return world.run(until: world.now + .seconds(1000))
            }
            let run = try LongPollRun(world)
            run.begin()
            world.run(until: world.now + .seconds(86_400))
            run.verify()
        } catch {
            world.fail("the options are refused: \(error)")
        }
    }
}
