import CShims
import Glibc
import Testing

@testable import Engine

/// Sockets on an epoll of their own, each one readable.
private final class Bench {
    let epoll = rt_epoll_create()
    let sockets: CurlSockets
    private var ends: [Int32] = []

    init() { sockets = CurlSockets(epoll: epoll) }

    deinit {
        for end in ends { close(end) }
        close(epoll)
    }

    /// A descriptor with a byte to read, which its owner closes.
    /// - Parameter number: to have again; other tests, meanwhile, take the lowest that are free.
    func made(isTold: Bool, number: Int32? = nil) -> Int32 {
        var pair: [Int32] = [-1, -1]
        #expect(pipe(&pair) == 0)
        #expect(write(pair[1], "x", 1) == 1)
        ends.append(pair[1])
        if let number {
            #expect(dup2(pair[0], number) == number)
            close(pair[0])
            pair[0] = number
        }
        if isTold { CurlSockets.opened(Unmanaged.passUnretained(sockets).toOpaque(), pair[0]) }
        return pair[0]
    }

    func end(_ socket: Int32) {
        #expect(CurlSockets.closed(Unmanaged.passUnretained(sockets).toOpaque(), socket) == 0)
    }

    /// What epoll finds ready, by number.
    var ready: [Int32] {
        var found = [rt_ready](repeating: rt_ready(), count: 8)
        let count = rt_epoll_wait(epoll, &found, 8, 0)
        return found.prefix(Int(count)).map { Int32(truncatingIfNeeded: $0.token) }.sorted()
    }
}

private let readable = PollEvents.readable

@Test func aSocketStaysUntilTheTurnIsOver() {
    let bench = Bench()
    let socket = bench.made(isTold: true)
    #expect(!bench.sockets.watch(socket, readable))
    #expect(bench.ready == [socket])
    #expect(bench.sockets.watch(socket, 0))
    #expect(bench.ready == [socket])
    // Taken up and let go of again: nothing changes in between.
    #expect(!bench.sockets.watch(socket, readable))
    #expect(bench.sockets.watch(socket, 0))
    bench.sockets.settle()
    #expect(bench.ready == [])
    #expect(!bench.sockets.watch(socket, readable))
    bench.sockets.settle()
    #expect(bench.ready == [socket])
    bench.end(socket)
    #expect(bench.ready == [])
}

@Test func aSocketTakenUpForOtherEventsIsAskedForThem() {
    let bench = Bench()
    let socket = bench.made(isTold: true)
    #expect(!bench.sockets.watch(socket, readable))
    #expect(bench.sockets.watch(socket, 0))
    // The reading end of a pipe is never writable.
    #expect(!bench.sockets.watch(socket, PollEvents.writable))
    #expect(bench.ready == [])
    bench.sockets.settle()
    #expect(!bench.sockets.watch(socket, readable | PollEvents.writable))
    #expect(bench.ready == [socket])
    bench.end(socket)
}

@Test func aSocketWhoseEndIsNotToldGoesAtOnce() {
    let bench = Bench()
    let socket = bench.made(isTold: false)
    #expect(!bench.sockets.watch(socket, readable))
    #expect(bench.ready == [socket])
    #expect(!bench.sockets.watch(socket, 0))
    #expect(bench.ready == [])
    close(socket)
}

@Test func theNextSocketOfANumberBeginsAnew() {
    let bench = Bench()
    let number: Int32 = 900
    let first = bench.made(isTold: true, number: number)
    #expect(!bench.sockets.watch(first, readable))
    #expect(bench.sockets.watch(first, 0))
    bench.end(first)
    let second = bench.made(isTold: true, number: number)
    #expect(!bench.sockets.watch(second, readable))
    #expect(bench.ready == [second])
    // What the first left behind does not reach the second.
    bench.sockets.settle()
    #expect(bench.ready == [second])
    bench.end(second)
    let third = bench.made(isTold: false, number: number)
    #expect(!bench.sockets.watch(third, readable))
    #expect(!bench.sockets.watch(third, 0))
    #expect(bench.ready == [])
    close(third)
}

@Test func aSocketThatAForkedChildHasTooLeavesEpoll() {
    let bench = Bench()
    let socket = bench.made(isTold: true)
    // Another descriptor of the same file, as a child's is: the kernel forgets nothing by itself.
    let childs = dup(socket)
    #expect(!bench.sockets.watch(socket, readable))
    #expect(bench.sockets.watch(socket, 0))
    bench.end(socket)
    #expect(bench.ready == [])
    close(childs)
}
