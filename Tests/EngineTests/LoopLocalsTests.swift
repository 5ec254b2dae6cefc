import Synchronization
import Testing
import Wire

@testable import Engine

private final class Pool: LoopLocal {
    let ends = Atomic<Int>(0)
    func loopClosed() { ends.add(1, ordering: .relaxed) }
}

private final class Cache: LoopLocal {}

private func pool(of loop: Loop) -> Pool { loop.local(Pool.self) { Pool() } }

@Test func aLoopKeepsOneLocalOfEachType() throws {
    let loop = try Loop()
    let first = pool(of: loop)
    #expect(pool(of: loop) === first)
    _ = loop.local(Cache.self) { Cache() }
    #expect(pool(of: loop) === first)
    #expect(try pool(of: Loop()) !== first)
}

@Test func aLocalThatFailsIsMadeByALaterCall() throws {
    let loop = try Loop()
    #expect(throws: RealtimeError.self) {
        try loop.local(Pool.self) { () throws(RealtimeError) in throw RealtimeError(.system, "") }
    }
    #expect(pool(of: loop) === pool(of: loop))
}

@Test func localsEndWithTheLoop() throws {
    let loop = try Loop()
    let before = pool(of: loop)
    loop.close()
    #expect(before.ends.load(ordering: .relaxed) == 1)
    // From now on no local is kept, because it would keep the loop, which keeps it alive.
    let after = pool(of: loop)
    #expect(after !== before)
    #expect(pool(of: loop) !== after)
}

@Test func aLocalMayUseOthersWhileItIsMade() throws {
    let loop = try Loop()
    let cache = loop.local(Cache.self) {
        _ = pool(of: loop)
        return Cache()
    }
    #expect(loop.local(Cache.self) { Cache() } === cache)
}

private final class Source: LoopSource {
    func ready(_ events: UInt32) {}
    func turn() {}
    func loopClosed() {}
}

@Test func theTokenOfARemovedSourceMatchesNoOther() {
    var table = SourceTable()
    let (first, second) = (Source(), Source())
    let old = table.add(first)
    #expect(table[old] === first)
    table.remove(old)
    let new = table.add(second)
    #expect(table[old] == nil)
    #expect(table[new] === second)
    #expect(new < 1 << 62)
    #expect(table.all.count == 1)
}
