import Glibc
import Simulator

// simulate [--scenario NAME] --seed N             one seed, with its trace
// simulate [--scenario NAME] --seeds N [--from M] so many seeds; stops at nothing, fails with any
// simulate [--scenario NAME]                      as many as `make test` runs

@main
enum Simulate {
    static func main() {
        let request: SimulationRequest
        do throws(SimulationRequest.Mistake) {
            request = try SimulationRequest(
                parsing: Array(CommandLine.arguments.dropFirst()),
                known: Simulation.scenarios.map { $0.name })
        } catch {
            refuse(error)
        }
        let scenarios = Simulation.scenarios.filter { request.scenarios.contains($0.name) }
        TrapReport.watchSeconds = 60
        let failed =
            switch request.seeds {
            case .one(let seed): scenarios.filter { replay($0, seed) }
            case .range(let seeds): scenarios.filter { !runs($0, seeds) }
            case .own: scenarios.filter { !runs($0, 1..<$0.seeds + 1) }
            }
        exit(failed.isEmpty ? 0 : 1)
    }

    /// - Returns: whether it failed.
    private static func replay(_ scenario: any Scenario.Type, _ seed: UInt64) -> Bool {
        let verdict = Simulation.run(scenario, seed: seed) { print($0) }
        print(verdict.violation.map { "FAILED: \($0)" } ?? "ok")
        return verdict.violation != nil
    }

    /// - Returns: whether all of them passed.
    private static func runs(_ scenario: any Scenario.Type, _ seeds: Range<UInt64>) -> Bool {
        var failures = 0
        var tally: [String: Int] = [:]
        let start = ContinuousClock.now
        for seed in seeds {
            let verdict = Simulation.run(scenario, seed: seed)
            tally.merge(verdict.tally) { $0 + $1 }
            if let failure = verdict.failure {
                failures += 1
                print(failure)
            }
        }
        let seconds = Double((ContinuousClock.now - start) / .milliseconds(1)) / 1000
        // Without seeds that reach a situation, nothing was proved about it.
        if seeds.count >= scenario.seeds {
            for situation in scenario.situations where tally[situation] == nil {
                failures += 1
                print("no seed of \(scenario.name) meets: \(situation)")
            }
        }
        for (what, count) in tally.sorted(by: { $0.key < $1.key }) { print("\(count)\t\(what)") }
        print("\(scenario.name): \(seeds.count) seeds, \(failures) failed, \(seconds) s")
        return failures == 0
    }

    private static func refuse(_ mistake: SimulationRequest.Mistake) -> Never {
        let names = Simulation.scenarios.map { $0.name }.joined(separator: ", ")
        let usage = """
            simulate: \(mistake.text)
            usage: simulate [--scenario NAME] [--seed N | --seeds N [--from M]]
            scenarios: \(names)

            """
        _ = usage.withCString { write(STDERR_FILENO, $0, strlen($0)) }
        exit(2)
    }
}
