import CShims
import Glibc
import Testing

@testable import Engine

/// #expect needs values that it can copy.
private final class Table: Sendable {
    private let listeners = EventSourceListeners()

    var isEmpty: Bool { listeners.isEmpty }
    var types: [[UInt8]] { listeners.types }
    func add(_ type: [UInt8], _ handle: @escaping EventSourceHandlers.Event = { _ in }) -> UInt64 {
        listeners.add(type, handle)
    }
    func remove(_ token: UInt64) -> Bool { listeners.remove(token) }
    func removeAll(of type: [UInt8]) { listeners.removeAll(of: type) }
    func removeAll() { listeners.removeAll() }
    func contains(_ token: UInt64) -> Bool { listeners.contains(token) }
    func of(_ type: [UInt8]) -> [EventSourceListeners.Listener] {
        type.withUnsafeBytes { listeners.of($0) }.filter { $0.handle != nil }
    }
    func recent(_ recent: inout RecentListeners, _ type: [UInt8]) -> [UInt64] {
        type.withUnsafeBytes { recent.of($0, in: listeners) }
            .filter { $0.handle != nil }.map(\.token)
    }
    func hasOnly(_ recent: RecentListeners, _ type: [UInt8]) -> Bool {
        type.withUnsafeBytes { recent.only(of: $0, in: listeners) != nil }
    }
}

@Suite struct EventSourceListenersTests {
    private let type = Array("tick".utf8)

    private func tokens(_ listeners: Table) -> [UInt64] { listeners.of(type).map(\.token) }

    @Test func theyKeepTheirOrder() {
        let listeners = Table()
        var expected: [UInt64] = []
        for _ in 0..<100 { expected.append(listeners.add(type)) }
        _ = listeners.add(Array("tock".utf8))
        // Removed from the front, the back and between: gaps are closed now and then.
        for token in expected where token % 3 != 1 {
            #expect(listeners.remove(token) && !listeners.contains(token))
            #expect(!listeners.remove(token))
            expected.removeAll { $0 == token }
            #expect(tokens(listeners) == expected)
        }
        #expect(listeners.types == [type, Array("tock".utf8)])
        listeners.removeAll(of: type)
        #expect(tokens(listeners).isEmpty && listeners.types == [Array("tock".utf8)])
        #expect(!listeners.contains(expected[0]) && !listeners.isEmpty)
        listeners.removeAll()
        #expect(listeners.isEmpty && listeners.types.isEmpty)
    }

    /// An event has the listeners that there were when it came.
    @Test func aListenerAddedMeanwhileGetsTheNextEvent() {
        let listeners = Table()
        let first = listeners.add(type)
        let seen = listeners.of(type)
        _ = listeners.add(type)
        #expect(seen.map(\.token) == [first])
    }

    /// The processor time of this thread. What other threads and processes do does not count.
    private static func spent() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// Eight times as many take about eight times as long, not sixty-four times.
    @Test(arguments: [true, false]) func manyListenersAreFast(isOneType: Bool) throws {
        func cost(_ count: Int) -> Duration {
            let listeners = Table()
            let before = EventSourceListenersTests.spent()
            var tokens: [UInt64] = []
            for index in 0..<count {
                let type = isOneType ? type : Array("\(index)".utf8)
                tokens.append(listeners.add(type))
            }
            for token in tokens { _ = listeners.remove(token) }
            #expect(listeners.isEmpty)
            return EventSourceListenersTests.spent() - before
        }
        let ratios = (0..<5).map { _ in cost(40_000) / cost(5000) }
        #expect(try #require(ratios.min()) < 25, "\(ratios)")
    }

    /// A listener's contents are released with it, outside the lock, since they may call back.
    @Test func removedListenersAreReleased() {
        final class Held: Sendable {
            let destroy: @Sendable () -> Void
            init(_ destroy: @escaping @Sendable () -> Void) { self.destroy = destroy }
            deinit { destroy() }
        }
        let table = Table()
        var released: [UInt64] = []
        for remove in [
            { _ = table.remove($0) }, { _ in table.removeAll(of: type) },
            { _ in table.removeAll() },
        ] as [(UInt64) -> Void] {
            var token: UInt64 = 0
            weak var held: Held?
            do {
                let one = Held { _ = table.types }
                held = one
                token = table.add(type, { _ in withExtendedLifetime(one) {} })
            }
            #expect(held != nil)
            remove(token)
            #expect(held == nil)
            released.append(token)
        }
        #expect(released == [1, 2, 3])
    }

    /// The cache is never out of date, even with more types than it holds.
    @Test func theLatestTypesAreCached() {
        let table = Table()
        var recent = RecentListeners()
        let types = (0..<20).map { Array("type \($0)".utf8) }
        for type in types { _ = table.add(type) }
        for round in 0..<3 {
            for type in types {
                #expect(table.recent(&recent, type) == table.of(type).map(\.token))
                #expect(table.hasOnly(recent, type), "round \(round)")
            }
            #expect(table.hasOnly(recent, types[19]) && !table.hasOnly(recent, types[0]))
        }
        // Every change counts, for all types.
        let second = table.add(types[19])
        #expect(!table.hasOnly(recent, types[19]))
        #expect(table.recent(&recent, types[19]) == [20, second])
        #expect(!table.hasOnly(recent, types[19]), "there are two")
        #expect(table.remove(20) && table.recent(&recent, types[19]) == [second])
        #expect(table.hasOnly(recent, types[19]))
        table.removeAll(of: types[19])
        #expect(!table.hasOnly(recent, types[19]) && table.recent(&recent, types[19]) == [])
        table.removeAll()
        #expect(table.recent(&recent, types[18]) == [])
    }
}
