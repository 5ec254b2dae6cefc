import Foundation
import Session
import Simulator
import Testing

/// Serialized: a trap is told with the seed that was running, and only one may be.
@Suite(.serialized) struct SimulationTests {
    private static let seedCount: UInt64 = 2000

    @Test func everySeedKeepsTheInvariants() async {
        for scenario in Simulation.scenarios {
            var tally: [String: Int] = [:]
            for seed in 1...SimulationTests.seedCount {
                let verdict = Simulation.run(scenario, seed: seed)
                tally.merge(verdict.tally) { $0 + $1 }
                if let failure = verdict.failure { Issue.record(Comment(rawValue: failure)) }
                // Other tests wait for this thread, with a limit to their time.
                await Task.yield()
            }
            // Seeds that never reach a situation prove nothing about it.
            for situation in scenario.situations where tally[situation] == nil {
                Issue.record("no seed of \(scenario.name) meets: \(situation)")
            }
        }
    }

    @Test func seedsThatFailedOncePass() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "seeds.txt")
        let text = try String(contentsOf: file, encoding: .utf8)
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let words = line.split(separator: " ", omittingEmptySubsequences: true)
            let scenario = try #require(
                Simulation.scenarios.first { $0.name == words[0] }, "no scenario: \(line)")
            let seed = try #require(UInt64(words[1]), "no seed: \(line)")
            let verdict = Simulation.run(scenario, seed: seed)
            if let failure = verdict.failure { Issue.record(Comment(rawValue: failure)) }
        }
    }

    /// A seed would be worth nothing if it did not mean the same run each time.
    @Test(arguments: [3, 17, 1543] as [UInt64]) func aSeedIsOneRun(seed: UInt64) {
        for scenario in Simulation.scenarios {
            var traces: [[String]] = [[], []]
            for index in traces.indices {
                _ = Simulation.run(scenario, seed: seed) { traces[index].append($0) }
            }
            #expect(traces[0].count > 5)
            #expect(traces[0] == traces[1])
        }
    }

    @Test func aViolationNamesItsSeed() throws {
        let verdict = Simulation.run(Failing.self, seed: 42)
        #expect(verdict.violation == "the first")
        let failure = try #require(verdict.failure)
        #expect(failure.contains("make simulate SCENARIO=failing SEED=42"))
        #expect(!failure.contains("\n"))
    }

    @Test func whatSpinsIsFound() {
        let verdict = Simulation.run(Spinning.self, seed: 1)
        #expect(verdict.violation?.hasPrefix("spins") == true)
    }
}

private enum Failing: Scenario {
    static let name = "failing"
    static let situations: [String] = []
    static func run(in world: World) {
        world.after(.seconds(1)) { world.require(1 + 1 == 3, "the first") }
        world.after(.seconds(2)) { world.require(1 + 1 == 4, "the second") }
        world.run(until: world.now + .seconds(10))
        world.require(false, "the last")
    }
}

private enum Spinning: Scenario {
    static let name = "spinning"
    static let situations: [String] = []
    static func run(in world: World) {
        spin(world)
        world.run(until: world.now + .seconds(1))
    }

    private static func spin(_ world: World) {
        world.after(.zero) { spin(world) }
    }
}
