/// What the command line asks for.
package struct SimulationRequest: Equatable {
    package enum Seeds: Equatable {
        /// With its trace.
        case one(UInt64)
        case range(Range<UInt64>)
        /// As many as each scenario defines.
        case own
    }

    /// An error in the command line.
    package struct Mistake: Error, Equatable {
        package let text: String
    }

    package let scenarios: [String]
    package let seeds: Seeds

    /// - Parameters:
    ///   - arguments: without the command's name.
    ///   - known: the names of all scenarios.
    package init(parsing arguments: [String], known: [String]) throws(Mistake) {
        var options: [String: String] = [:]
        var rest = arguments[...]
        while let name = rest.popFirst() {
            guard ["--scenario", "--seed", "--seeds", "--from"].contains(name) else {
                throw Mistake(text: "\"\(name)\" is not an option")
            }
            guard let value = rest.popFirst() else { throw Mistake(text: "\(name) has no value") }
            guard options.updateValue(value, forKey: name) == nil else {
                throw Mistake(text: "\(name) is given twice")
            }
        }
        let scenario = options["--scenario"]
        scenarios = known.filter { scenario == nil || $0 == scenario }
        guard !scenarios.isEmpty else {
            throw Mistake(text: "there is no scenario \"\(scenario ?? "")\"")
        }
        if let text = options["--seed"] {
            guard options["--seeds"] == nil, options["--from"] == nil else {
                throw Mistake(text: "--seed runs one seed, --seeds and --from run many")
            }
            seeds = .one(try SimulationRequest.number(text, "--seed"))
            return
        }
        guard let text = options["--seeds"] else {
            guard options["--from"] == nil else {
                throw Mistake(text: "--from needs --seeds")
            }
            seeds = .own
            return
        }
        let count = try SimulationRequest.number(text, "--seeds")
        let first = try SimulationRequest.number(options["--from"] ?? "1", "--from")
        let (end, overflow) = first.addingReportingOverflow(count)
        guard count > 0, !overflow else {
            throw Mistake(text: "there are no \(count) seeds from \(first) on")
        }
        seeds = .range(first..<end)
    }

    private static func number(_ text: String, _ name: String) throws(Mistake) -> UInt64 {
        guard let number = UInt64(text) else {
            throw Mistake(
                text: "\(name) is \"\(text)\", a whole number from 0 to \(UInt64.max) is expected")
        }
        return number
    }
}
