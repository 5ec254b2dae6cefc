import Session

/// Polls of a server that holds them or does not, answers with messages or nothing, fails in many
/// ways and forgets: every message comes once and in order, and each poll comes when it should. One
/// run in eight is a storm: a server that wants to be polled as often as possible. In all of them
/// requests keep to a ceiling.
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
            // Of its own randomness: the other runs draw as they did before there were storms.
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
