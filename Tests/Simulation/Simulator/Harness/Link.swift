/// One direction of a connection: how the network treats its bytes.
package struct Link: Sendable {
    /// A fault that happens after a number of bytes has left the sender.
    package enum Fault: Sendable {
        /// Nothing more arrives, and the receiver sees the stream end.
        case cut
        /// Both ends see a reset; with `keepsArrived` the receiver keeps the bytes that have
        /// arrived.
        case reset(keepsArrived: Bool)
        /// Nothing moves for this long.
        case stall(Duration)
        /// The next byte arrives changed.
        case corrupt(UInt8)
        /// Nothing more arrives, and neither end notices.
        case swallow
    }

    package var latency: ClosedRange<Int> = 100...2000
    /// Bytes that travel together; segments that arrive before they are read coalesce.
    package var segment: ClosedRange<Int> = 1...1460
    /// 0 means no limit.
    package var bytesPerMillisecond = 0
    /// The kernel's buffers for the sender and for the receiver.
    package var sendBuffer = 16_384
    package var receiveBuffer = 16_384
    /// Sorted by the number of bytes sent before.
    package var faults: [(at: Int, Fault)] = []

    package init() {}

    /// Draws any network, gentle or harsh. `tiny` allows segments of one byte, which only a run
    /// with little traffic can afford.
    package init(_ random: inout Random, tiny: Bool) {
        let fastest = random.pick([10, 100, 1000, 20_000])
        latency = fastest...(fastest * random.within(1...5))
        switch random.below(4) {
        case 0: segment = tiny ? 1...1 : 700...1460
        case 1: segment = tiny ? 1...7 : 100...1460
        case 2: segment = tiny ? 1...200 : 1...20_000
        default: segment = 1460...1460
        }
        if random.chance(25) { bytesPerMillisecond = random.pick(tiny ? [5, 100] : [500, 5000]) }
        let buffers = tiny ? [16, 200, 4096] : [2000, 16_384, 200_000]
        sendBuffer = random.pick(buffers)
        receiveBuffer = random.pick(buffers)
    }
}

/// A queue of bytes, cheap at both ends.
struct ByteQueue {
    private var bytes: [UInt8] = []
    private var head = 0

    var count: Int { bytes.count - head }
    var isEmpty: Bool { head == bytes.count }

    mutating func append(_ more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }

    mutating func take(_ count: Int) -> [UInt8] {
        let taken = Array(bytes[head..<(head + count)])
        drop(count)
        return taken
    }

    mutating func take(into buffer: UnsafeMutableRawBufferPointer) {
        let count = buffer.count
        bytes.withUnsafeBytes {
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[head..<(head + count)]))
        }
        drop(count)
    }

    /// Puts back bytes that `take` took and nobody used.
    mutating func putBack(_ rest: ArraySlice<UInt8>) {
        if head >= rest.count {
            head -= rest.count
            bytes.replaceSubrange(head..<(head + rest.count), with: rest)
        } else {
            bytes.insert(contentsOf: rest, at: head)
        }
    }

    mutating func removeAll() {
        bytes.removeAll()
        head = 0
    }

    private mutating func drop(_ count: Int) {
        head += count
        if head == bytes.count {
            removeAll()
        } else if head > 65_536 {
            bytes.removeFirst(head)
            head = 0
        }
    }
}
