import Testing

@testable import Documents

/// Hands out numbered seeds.
private struct Seeds: SeedSource {
    var count = 0

    mutating func seed() -> String {
        count += 1
        return "0123456789abcdef012\(count)"
    }
}

struct RandomScopeTests {
    /// The vectors of M9. The hash of the last three passes 2^32.
    @Test(
        arguments: [
            (["0"], [0.5945264333859086, 0.8065849216654897], "cp9hWvhg8GSvuZ9os"),
            ([""], [0.1666577742435038, 0.4869158477522433], "BW2uBqqs2SbwN96pH"),
            (
                ["my", "3", "seeds"], [0.30802189325913787, 0.5190450621303171], "JYRduBwQtjpeCkqP7"
            ),
            (["😀"], [0.08367577847093344], "69oYRTBej43r9cWEa"),
            (["ключ", "/collection/日本"], [0.7922039309050888], "oasfA8aomParLGcNk"),
            (
                ["1ab07143000000000000", "/collection/players"], [0.49459250713698566],
                "Xq6yPd8khqSxTXhw2"
            ),
            (
                ["6139e12b000000000000", "/collection/players"], [0.564996977802366],
                "bPbjuvaTitRE8Pqu7"
            ),
            (
                ["fc801068000000000000", "/collection/players"], [0.3854242879897356],
                "P5eTnmsWSFwefj47K"
            ),
        ])
    func meteorsVectors(seeds: [String], fractions: [Double], id: String) {
        var stream = RandomStream(seeds: seeds)
        for fraction in fractions { #expect(stream.fraction() == fraction) }
        stream = RandomStream(seeds: seeds)
        #expect(stream.id() == id)
    }

    @Test func streamsDoNotDisturbEachOther() {
        var source = Seeds()
        var (first, second) = (RandomScope(seed: "s"), RandomScope(seed: "s"))
        let id = first.withStream("a", drawing: &source) { $0.id() }
        _ = second.withStream("b", drawing: &source) { $0.id() }
        #expect(second.withStream("a", drawing: &source) { $0.id() } == id)
        #expect(first.withStream("a", drawing: &source) { $0.id() } != id)
        #expect(source.count == 0)
    }

    @Test func theSeedIsDrawnWhenItIsNeeded() {
        var source = Seeds()
        var scope = RandomScope()
        var inner = scope.nested("m")
        scope.take(inner)
        #expect(source.count == 0)
        #expect(scope.seed == nil)
        inner = scope.nested("m")
        _ = inner.withStream("a", drawing: &source) { $0.id() }
        scope.take(inner)
        #expect(source.count == 1)
        #expect(scope.seed == "0123456789abcdef0121")
        _ = scope.withStream("a", drawing: &source) { $0.id() }
        #expect(source.count == 1)
    }

    @Test func innerCallsDrawTheirSeedsInTurn() {
        var source = Seeds()
        var scope = RandomScope(seed: "0123456789abcdef0123")
        var ids: [String] = []
        for _ in 0..<2 {
            var inner = scope.nested("anotherMethod")
            ids.append(inner.withStream("/collection/players", drawing: &source) { $0.id() })
            scope.take(inner)
        }
        #expect(ids == ["NYSoL3pWmYTap4ioR", "uEyqZ4EKZZjYiStt6"])
    }
}
