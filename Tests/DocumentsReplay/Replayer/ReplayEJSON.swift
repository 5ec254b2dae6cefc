import Wire

extension Replay {
    mutating func runEJSON(_ root: JSONNode) throws(RealtimeError) {
        for test in root.list("cases") ?? root.elements {
            let kind = test.member("kind")?.string ?? ""
            let text = test.member("text")?.string ?? ""
            switch kind {
            case "roundtrip", "clone":
                let value = try? EJSON(parsing: text)
                let expected = test.member("canonical")?.string ?? ""
                if test.member("numbers")?.bool ?? false {
                    compare(kind, test, try? EJSON(parsing: expected), value)
                } else {
                    compare(kind, test, .string(expected), value.map { .string($0.canonicalText) })
                }
            case "equal":
                guard let first = try test.value("a"), let second = try test.value("b") else {
                    continue
                }
                compare(
                    kind, test, .array([try test.value("equal"), try test.value("inOrder")].known),
                    .array([
                        .bool(first == second), .bool(first.equals(second, keyOrder: true)),
                    ]))
            case "invalid":
                compare(kind, test, nil, try? EJSON(parsing: text))
            default:
                throw RealtimeError(.invalidArgument, "the kind \(kind) of a case is unknown")
            }
        }
    }
}

extension [EJSON?] {
    fileprivate var known: [EJSON] { compactMap { $0 } }
}
