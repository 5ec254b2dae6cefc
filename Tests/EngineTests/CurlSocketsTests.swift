import CShims
import Glibc
import Testing

@testable import Engine

/// Sockets in an epoll of their own, each one readable. What libcurl would say of them is said by
/// the tests.
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

    /// A descriptor with a byte to read, in epoll.
    /// - Parameter number: to have again; other tests, meanwhile, take the lowest that are free.
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

    /// A socket that is writable, as one is that has connected, and its other end.
    func connecting() -> (Int32, Int32) {
        var pair: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        sockets.watch(pair[0], PollEvents.writable, isNew: true)
        return (pair[0], pair[1])
    }

    func end(_ socket: Int32) { #expect(CurlSockets.closed(user, socket) == 0) }

    /// What epoll finds ready, by number.
    var ready: [Int32] {
        let found = waiting
        for socket in found { sockets.told(socket) }
        return found
    }

    private var waiting: [Int32] {
        var found = [shim_ready](repeating: shim_ready(), count: 8)
        let count = shim_epoll_wait(epoll, &found, 8, 0)
        return found.prefix(Int(count)).map { Int32(truncatingIfNeeded: $0.token) }.sorted()
    }
}

private let readable = PollEvents.readable

@Test func aSocketStaysUntilTheTurnIsOver() {
    let bench = Bench()
    let socket = bench.made()
    #expect(bench.sockets.letGo(of: socket))
    #expect(bench.ready == [socket])
    // Taken up and let go of again: nothing changes in between.
    bench.sockets.watch(socket, readable, isNew: true)
    #expect(bench.sockets.letGo(of: socket))
    #expect(bench.ready == [socket])
    bench.sockets.settle()
    #expect(bench.ready == [])
    bench.sockets.watch(socket, readable, isNew: true)
    #expect(bench.ready == [socket])
    bench.end(socket)
}

@Test func aSocketThatIsTakenUpStays() {
    let bench = Bench()
    let socket = bench.made()
    #expect(bench.sockets.letGo(of: socket))
    bench.sockets.watch(socket, readable, isNew: true)
    bench.sockets.settle()
    #expect(bench.ready == [socket])
    bench.end(socket)
    #expect(bench.ready == [])
}

@Test func aSocketTakenUpForOtherEventsIsAskedForThem() {
    let bench = Bench()
    let socket = bench.made()
    #expect(bench.sockets.letGo(of: socket))
    // The reading end of a pipe is never writable.
    bench.sockets.watch(socket, PollEvents.writable, isNew: true)
    #expect(bench.ready == [])
    #expect(bench.sockets.letGo(of: socket))
    bench.sockets.watch(socket, readable | PollEvents.writable, isNew: true)
    #expect(bench.ready == [socket])
    bench.end(socket)
}

@Test func aSocketThatIsNotKeptGoesAtOnce() {
    let bench = Bench()
    let socket = bench.made(isKept: false)
    #expect(!bench.sockets.letGo(of: socket))
    #expect(bench.ready == [])
    bench.sockets.watch(socket, readable, isNew: true)
    // libcurl closes it without a word, and a WebSocket has the number next.
    close(socket)
    let next = bench.made(isKept: false)
    bench.sockets.settle()
    #expect(bench.ready == [next])
    #expect(!bench.sockets.letGo(of: next))
    close(next)
}

@Test func theNextSocketOfANumberBeginsAnew() {
    let bench = Bench()
    let number: Int32 = 900
    let first = bench.made(number: number)
    #expect(bench.sockets.letGo(of: first))
    bench.end(first)
    let second = bench.made(isKept: false, number: number)
    // What the first left behind does not reach the second.
    bench.sockets.settle()
    #expect(bench.ready == [second])
    #expect(!bench.sockets.letGo(of: second))
    bench.end(second)
}

@Test func aSocketThatAForkedChildHasTooLeavesEpoll() {
    let bench = Bench()
    let socket = bench.made()
    // Another descriptor of the same file, as a child's is: the kernel forgets nothing by itself.
    let childs = dup(socket)
    #expect(bench.sockets.letGo(of: socket))
    bench.end(socket)
    #expect(bench.ready == [])
    close(childs)
}

@Test func aSocketThatConnectsIsToldOnceForEachLook() {
    let bench = Bench()
    let (socket, other) = bench.connecting()
    defer { close(other) }
    #expect(bench.ready == [socket])
    #expect(bench.ready == [])
    bench.sockets.seen(socket)
    #expect(bench.ready == [socket])
    bench.sockets.seen(socket)
    // Connected: libcurl sends, and wants to know all.
    bench.sockets.watch(socket, readable | PollEvents.writable, isNew: false)
    #expect(bench.ready == [socket])
    bench.sockets.seen(socket)
    #expect(bench.ready == [socket])
    #expect(!bench.sockets.letGo(of: socket))
    #expect(bench.ready == [])
    bench.sockets.seen(socket)
    #expect(bench.ready == [])
    bench.end(socket)
}

@Test func aSocketThatConnectedInVainIsNotToldOfForEver() {
    let bench = Bench()
    let (socket, other) = bench.connecting()
    // As a forked child has it, too; libcurl closes its own without a word, and lets go then.
    let childs = dup(socket)
    close(socket)
    #expect(!bench.sockets.letGo(of: socket))
    #expect(bench.ready == [socket])
    bench.sockets.seen(socket)
    #expect(bench.ready == [])
    close(childs)
    close(other)
}
