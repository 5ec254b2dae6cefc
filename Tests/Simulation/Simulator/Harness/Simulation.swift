/// A protocol in the simulator: builds client, network and peer from the world's randomness, lets
/// time pass and checks its invariants with `World.require`.
package protocol Scenario {
    static var name: String { get }
    /// Situations that a run of `seeds` seeds must meet at least once each (`World.count`). Without
    /// them a harness that no longer reaches anything would pass.
    static var situations: [String] { get }
    /// How many seeds `make test` runs.
    static var seeds: UInt64 { get }
    static func run(in world: World)
}

extension Scenario {
    package static var seeds: UInt64 { 2000 }
}

/// Runs seeds.
package enum Simulation {
    /// Every protocol is listed here.
    package static var scenarios: [any Scenario.Type] {
        [
            ReconnectionScenario.self, WebSocketScenario.self, EventSourceScenario.self,
            RESTScenario.self, LongPollScenario.self, SpreadbotScenario.self, PusherScenario.self,
            DDPScenario.self,
        ]
    }

    package struct Verdict {
        package let scenario: String
        package let seed: UInt64
        package let violation: String?
        package let tally: [String: Int]

        /// One line: what failed, and how to repeat it.
        package var failure: String? {
            violation.map {
                "simulation: \(scenario) seed \(seed) failed: \($0) — again, with a trace:"
                    + " make simulate SCENARIO=\(scenario) SEED=\(seed)"
            }
        }
    }

    package static func run(
        _ scenario: any Scenario.Type, seed: UInt64, print: ((String) -> Void)? = nil
    ) -> Verdict {
        TrapReport.begin(scenario.name, seed)
        defer { TrapReport.end() }
        let world = World(seed: seed, print: print)
        scenario.run(in: world)
        world.end()
        return Verdict(
            scenario: scenario.name, seed: seed, violation: world.violation, tally: world.tally)
    }
}
