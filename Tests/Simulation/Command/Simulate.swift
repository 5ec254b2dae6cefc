import Glibc
import Simulator

// simulate [--scenario NAME] --seed N             one seed, with its trace
// simulate [--scenario NAME] --seeds N [--from M] so many seeds; stops at nothing, fails with any

@main
enum Simulate {
    static func main() {
        var options: [String: String] = [:]
        var arguments = CommandLine.arguments.dropFirst()
        while let name = arguments.popFirst() {
            guard ["--scenario", "--seed", "--seeds", "--from"].contains(name),
                let value = arguments.popFirst()
            else { usage() }
            options[name] = value
        }
        let wanted = options["--scenario"]
        let scenarios = Simulation.scenarios.filter { wanted == nil || $0.name == wanted }
        if scenarios.isEmpty { usage() }
        TrapReport.watchSeconds = 60
        if let seed = options["--seed"].flatMap({ UInt64($0) }) {
            let failed = scenarios.filter { replay($0, seed) }
            exit(failed.isEmpty ? 0 : 1)
        }
        guard let count = options["--seeds"].flatMap({ UInt64($0) }),
            let first = UInt64(options["--from"] ?? "1")
        else { usage() }
        let failed = scenarios.filter { !runs($0, first..<(first + count)) }
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
        for (what, count) in tally.sorted(by: { $0.key < $1.key }) { print("\(count)\t\(what)") }
        print("\(scenario.name): \(seeds.count) seeds, \(failures) failed, \(seconds) s")
        return failures == 0
    }

    private static func usage() -> Never {
        let names = Simulation.scenarios.map { $0.name }.joined(separator: ", ")
        print("usage: simulate [--scenario NAME] (--seed N | --seeds N [--from M])")
        print("scenarios: \(names)")
        exit(2)
    }
}
