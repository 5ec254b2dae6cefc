import CShims
import Glibc
import Testing

@testable import Engine

/// Readable sockets in their own epoll. The tests make the calls that libcurl would make.
private final class Bench {
    let epoll = shim_epoll_create()
    let sockets: CurlSockets
    private var ends: [Int32] = []

    init() { sockets = CurlSockets(epoll: epoll) }

    deinit {
        for end in ends { close(end) }
        close(epoll)
    }

    private var user: UnsafeMutableRawPointer { Unmanaged.passUnretained(sockets).toOpaque() }

    /// Adds a descriptor with a byte to read to epoll.
    /// - Parameter number: reuse this number; parallel tests take the lowest free ones.
    func made(isKept: Bool = true, number: Int32? = nil) -> Int32 {
        var pair: [Int32] = [-1, -1]
        #expect(pipe(&pair) == 0)
        #expect(write(pair[1], "x", 1) == 1)
        ends.append(pair[1])
        if let number {
            #expect(dup2(pair[0], number) == number)
            close(pair[0])
            pair[0] = number
        }
        if isKept { sockets.keep(pair[0]) }
        sockets.watch(pair[0], readable, isNew: true)
        return pair[0]
    }

    /// A writable socket, like one that has connected, and its other end.
    func connecting() -> (Int32, Int32) {
        var pair: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        sockets.watch(pair[0], PollEvents.writable, isNew: true)
        return (pair[0], pair[1])
    }

    func end(_ socket: Int32) { #expect(CurlSockets.closed(user, socket) == 0) }

    /// The numbers that epoll reports as ready.
    var ready: [Int32] {
        let found = waiting
        for socket in found { sockets.reported(socket) }
        return found
    }

    private var waiting: [Int32] {
        var found = [shim_ready](repeating: shim_ready(), count: 8)
        let count = shim_epoll_wait(epoll, &found, 8, 0)
        return found.prefix(Int(count)).map { Int32(truncatingIfNeeded: $0.token) }.sorted()
    }
}

private let readable = PollEvents.readable

@Test func aReleasedSocketStaysUntilTheEndOfTheTurn() {
    let bench = Bench()
    let socket = bench.made()
    #expect(bench.sockets.release(socket))
    #expect(bench.ready == [socket])
    // Watched and released again: nothing changes in between.
    bench.sockets.watch(socket, readable, isNew: true)
    #expect(bench.sockets.release(socket))
    #expect(bench.ready == [socket])
    bench.sockets.settle()
    #expect(bench.ready == [])
    bench.sockets.watch(socket, readable, isNew: true)
    #expect(bench.ready == [socket])
    bench.end(socket)
}

@Test func aSocketThatIsWatchedAgainStays() {
    let bench = Bench()
    let socket = bench.made()
    #expect(bench.sockets.release(socket))
    bench.sockets.watch(socket, readable, isNew: true)
    bench.sockets.settle()
    #expect(bench.ready == [socket])
    bench.end(socket)
    #expect(bench.ready == [])
}

@Test func aSocketWatchedForOtherEventsGetsThem() {
    let bench = Bench()
    let socket = bench.made()
    #expect(bench.sockets.release(socket))
    // The reading end of a pipe is never writable.
    bench.sockets.watch(socket, PollEvents.writable, isNew: true)
    #expect(bench.ready == [])
    #expect(bench.sockets.release(socket))
    bench.sockets.watch(socket, readable | PollEvents.writable, isNew: true)
    #expect(bench.ready == [socket])
    bench.end(socket)
}

@Test func aSocketThatIsNotKeptLeavesAtOnce() {
    let bench = Bench()
    let socket = bench.made(isKept: false)
    #expect(!bench.sockets.release(socket))
    #expect(bench.ready == [])
    bench.sockets.watch(socket, readable, isNew: true)
    // libcurl closes it without notice, and a WebSocket gets the number next.
    close(socket)
    let next = bench.made(isKept: false)
    bench.sockets.settle()
    #expect(bench.ready == [next])
    #expect(!bench.sockets.release(next))
    close(next)
}

@Test func theNextSocketWithANumberStartsFresh() {
    let bench = Bench()
    let number: Int32 = 900
    let first = bench.made(number: number)
    #expect(bench.sockets.release(first))
    bench.end(first)
    let second = bench.made(isKept: false, number: number)
    // Leftovers of the first socket must not affect the second.
    bench.sockets.settle()
    #expect(bench.ready == [second])
    #expect(!bench.sockets.release(second))
    bench.end(second)
}

@Test func aSocketThatAForkedChildHasTooLeavesEpoll() {
    let bench = Bench()
    let socket = bench.made()
    // Another descriptor of the same file, like a child's: the kernel keeps it in epoll.
    let childs = dup(socket)
    #expect(bench.sockets.release(socket))
    bench.end(socket)
    #expect(bench.ready == [])
    close(childs)
}

@Test func aConnectingSocketIsReportedOncePerCheck() {
    let bench = Bench()
    let (socket, other) = bench.connecting()
    defer { close(other) }
    #expect(bench.ready == [socket])
    #expect(bench.ready == [])
    bench.sockets.handled(socket)
    #expect(bench.ready == [socket])
    bench.sockets.handled(socket)
    // Connected: libcurl sends, and wants all events.
    bench.sockets.watch(socket, readable | PollEvents.writable, isNew: false)
    #expect(bench.ready == [socket])
    bench.sockets.handled(socket)
    #expect(bench.ready == [socket])
    #expect(!bench.sockets.release(socket))
    #expect(bench.ready == [])
    bench.sockets.handled(socket)
    #expect(bench.ready == [])
    bench.end(socket)
}

@Test func aFailedSocketIsNotReportedForever() {
    let bench = Bench()
    let (socket, other) = bench.connecting()
    // A forked child has it, too; libcurl closes its own without notice, and releases it then.
    let childs = dup(socket)
    close(socket)
    #expect(!bench.sockets.release(socket))
    #expect(bench.ready == [socket])
    bench.sockets.handled(socket)
    #expect(bench.ready == [])
    close(childs)
    close(other)
}
