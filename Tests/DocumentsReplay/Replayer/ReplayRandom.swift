import Documents
import Wire

extension Replay {
    mutating func runRandom(_ root: JSONNode) throws(RealtimeError) {
        for test in root.list("cases") ?? root.elements {
            switch test.member("kind")?.string ?? "" {
            case "alea": try runAlea(test)
            case "draws":
                var stream = RandomStream(seeds: test.seeds)
                var results: [EJSON] = []
                if let draws = test.list("draws") {
                    for draw in draws { results.append(try stream.draw(Array(draw.elements))) }
                }
                compare("draws", test, try test.value("results"), .array(results))
            case "streams":
                var scope = RandomScope(seed: test.member("seed")?.string)
                var results: [EJSON] = []
                if let draws = test.list("draws") {
                    for draw in draws {
                        let draw = draw.elements.map { $0.string ?? "" }
                        results.append(scope.draw(draw[0], draw[1]))
                    }
                }
                compare("streams", test, try test.value("results"), .array(results))
            case "nested":
                var scope = RandomScope(seed: test.member("seed")?.string)
                compare("nested", test, try test.value("results"), scope.run(test))
            case let kind:
                throw RealtimeError(.invalidArgument, "the kind \(kind) of a case is unknown")
            }
        }
    }

    private mutating func runAlea(_ test: JSONNode) throws(RealtimeError) {
        var (fractions, ids, digits) = (
            RandomStream(seeds: test.seeds), RandomStream(seeds: test.seeds),
            RandomStream(seeds: test.seeds)
        )
        var results: [EJSON] = []
        results.append(.array((0..<5).map { _ in .number(fractions.fraction()) }))
        results.append(.array((0..<3).map { _ in .string(ids.id()) }))
        results.append(.array([.string(digits.hexString(20)), .string(digits.hexString(24))]))
        var expected: [EJSON] = []
        for list in [try test.value("fractions"), try test.value("ids"), try test.value("hex")] {
            expected.append(list ?? .null)
        }
        compare("alea", test, .array(expected), .array(results))
    }
}

extension JSONNode {
    fileprivate var seeds: [String] {
        var seeds: [String] = []
        guard let list = list("seeds") else { return seeds }
        for seed in list {
            seeds.append(seed.string ?? seed.double.map { EJSON.number($0).text } ?? "")
        }
        return seeds
    }
}

extension RandomStream {
    fileprivate mutating func draw(_ draw: [JSONNode]) throws(RealtimeError) -> EJSON {
        let count = draw.count > 1 ? draw[1].integer.map { Int($0) } : nil
        switch draw.first?.string ?? "" {
        case "fraction": return .number(fraction())
        case "id": return .string(id(count ?? 17))
        case "hex": return .string(hexString(count ?? 0))
        case "secret": return .string(secret(count ?? 43))
        case "choice":
            if let text = draw[1].string {
                let units = Array(text.utf16)
                return .string(String(decoding: [units[index(below: units.count)]], as: UTF16.self))
            }
            let elements = Array(draw[1].elements)
            return try EJSON(elements[index(below: elements.count)])
        case let kind: throw RealtimeError(.invalidArgument, "the draw \(kind) is unknown")
        }
    }
}

/// The recorded cases name their seeds.
private struct NoSeeds: SeedSource {
    mutating func seed() -> String { "" }
}

extension RandomScope {
    fileprivate mutating func draw(_ name: String, _ kind: String) -> EJSON {
        var source = NoSeeds()
        return withStream(name, drawing: &source) { stream in
            switch kind {
            case "id": .string(stream.id())
            case "hex24": .string(stream.hexString(24))
            default: .number(stream.fraction())
            }
        }
    }

    fileprivate mutating func run(_ steps: JSONNode) -> EJSON {
        var results: [EJSON] = []
        guard let steps = steps.list("steps") else { return .array(results) }
        for step in steps {
            guard let method = step.member("call")?.string else {
                results.append(draw(step.member("stream")?.string ?? "", "id"))
                continue
            }
            var inner = nested(method)
            var result = EJSONObject()
            let values = inner.run(step)
            result["seed"] = inner.seed.map { .string($0) } ?? .null
            result["results"] = values
            take(inner)
            results.append(.object(result))
        }
        return .array(results)
    }
}
