import Foundation
import Session
import Simulator
import Testing

/// Serialized, because the report of a trap names the seed that was running, and knows only one.
@Suite(.serialized) struct SimulationTests {
    /// `simulate` runs many more seeds in release, and checks that they meet every situation.
    @Test(arguments: Simulation.scenarios.map { $0.name })
    func everySeedKeepsTheInvariants(name: String) async throws {
        let scenario = try #require(Simulation.scenarios.first { $0.name == name })
        for seed in 1...100 as ClosedRange<UInt64> {
            let verdict = Simulation.run(scenario, seed: seed)
            if let failure = verdict.failure { Issue.record(Comment(rawValue: failure)) }
            // Other tests wait for this thread, with a time limit.
            await Task.yield()
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

    /// A seed must mean the same run each time.
    @Test(arguments: [3, 17, 1544] as [UInt64]) func aSeedIsOneRun(seed: UInt64) {
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

    @Test func endlessEventsAreFound() {
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

@Suite struct SimulationRequestTests {
    private let known = ["a", "b"]

    private func mistake(_ arguments: String...) -> String? {
        do throws(SimulationRequest.Mistake) {
            _ = try SimulationRequest(parsing: arguments, known: known)
            return nil
        } catch {
            return error.text
        }
    }

    @Test func seedsAreParsed() throws {
        let one = try SimulationRequest(parsing: ["--seed", "7"], known: known)
        #expect(one.seeds == .one(7) && one.scenarios == known)
        let many = try SimulationRequest(
            parsing: ["--scenario", "b", "--seeds", "3", "--from", "5"], known: known)
        #expect(many.seeds == .range(5..<8) && many.scenarios == ["b"])
        #expect(try SimulationRequest(parsing: [], known: known).seeds == .own)
    }

    @Test func mistakesAreNamed() {
        #expect(mistake("--seed", "x") == mistake("--seed", "x", "--scenario", "a"))
        #expect(mistake("--seed", "x")?.contains("--seed is \"x\", a whole number") == true)
        #expect(mistake("--seed", "-1")?.contains("\"-1\"") == true)
        #expect(mistake("--seeds", "1e5")?.contains("--seeds is \"1e5\"") == true)
        #expect(mistake("--seeds", "2", "--from", "")?.contains("--from is \"\"") == true)
        #expect(mistake("--seed", "1", "--scenario", "c") == "there is no scenario \"c\"")
        #expect(mistake("--sed", "1") == "\"--sed\" is not an option")
        #expect(mistake("--seed") == "--seed has no value")
        #expect(mistake("--seed", "1", "--seed", "2") == "--seed is given twice")
        #expect(mistake("--seed", "1", "--from", "2")?.contains("--from") == true)
        #expect(mistake("--from", "2") == "--from needs --seeds")
        let most = String(UInt64.max)
        #expect(mistake("--seeds", most, "--from", "2") == "there are no \(most) seeds from 2 on")
        #expect(mistake("--seeds", "0") == "there are no 0 seeds from 1 on")
    }
}
