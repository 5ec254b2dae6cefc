import Wire

/// Draws the seeds of outermost calls.
package protocol SeedSource {
    /// 20 hexadecimal digits, which cannot be guessed.
    mutating func seed() -> String
}

/// The named streams of one invocation of a method. Each stream is made when it is first used and
/// keeps its position, so that the client's stub and the server's method draw the same ids.
package struct RandomScope: Sendable {
    /// What all streams follow from. Nil until the first stream is used: then the message of an
    /// outermost call contains the seed.
    package private(set) var seed: String?
    private var streams: [ByteText: RandomStream] = [:]
    /// Of an inner call: the calling method's scope, and the name of the called one.
    private var caller: [RandomScope] = []
    private var method = ""

    /// The scope of an outermost call.
    /// - Parameter seed: nil to draw one when it is needed.
    package init(seed: String? = nil) { self.seed = seed }

    /// The scope of a method that the stub calls. Its seed is drawn from this scope's stream
    /// `/rpc/METHOD` when it is needed. Pass the inner scope to `take` after the call.
    package func nested(_ method: String) -> RandomScope {
        var inner = RandomScope()
        inner.caller = [self]
        inner.method = method
        return inner
    }

    /// Continues after an inner call, which may have drawn from this scope.
    package mutating func take(_ inner: RandomScope) {
        if let caller = inner.caller.first { self = caller }
    }

    /// Calls `body` with a stream, which is made if it is new.
    package mutating func withStream<Result>(
        _ name: String, drawing source: inout some SeedSource,
        _ body: (inout RandomStream) -> Result
    ) -> Result {
        let key = ByteText(name)
        var stream = streams[key] ?? RandomStream(seeds: [drawnSeed(&source), name])
        defer { streams[key] = stream }
        return body(&stream)
    }

    private mutating func drawnSeed(_ source: inout some SeedSource) -> String {
        if let seed { return seed }
        let drawn =
            caller.isEmpty
            ? source.seed()
            : caller[0].withStream("/rpc/" + method, drawing: &source) { $0.hexString(20) }
        seed = drawn
        return drawn
    }
}
