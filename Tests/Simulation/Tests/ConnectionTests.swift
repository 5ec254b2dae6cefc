import Session
import Simulator
import Testing

/// Properties of simulated connections without which the simulation would prove nothing.
@Suite struct ConnectionTests {
    /// Writes a stream as the link accepts it, and collects what the other end reads.
    private final class End: EndpointOwner {
        let endpoint: Endpoint
        var toSend: [UInt8] = []
        var received: [UInt8] = []
        var readSizes: Set<Int> = []
        var blocked = 0
        var ending: Endpoint.Read?

        init(_ endpoint: Endpoint, _ bytes: [UInt8] = []) {
            self.endpoint = endpoint
            toSend = bytes
            endpoint.owner = self
            endpoint.watch([.readable, .writable])
        }

        func ready(_ events: Endpoint.Events) {
            while !toSend.isEmpty {
                let written = toSend.withUnsafeBytes(endpoint.write)
                guard case .bytes(let count) = written else {
                    blocked += 1
                    break
                }
                toSend.removeFirst(count)
                if toSend.isEmpty { endpoint.finishWriting() }
            }
            var buffer = [UInt8](repeating: 0, count: 1000)
            while true {
                let result = buffer.withUnsafeMutableBytes(endpoint.read)
                guard case .bytes(let count) = result else {
                    if result != .wouldBlock {
                        ending = result
                        endpoint.watch(nil)
                        return
                    }
                    break
                }
                received += buffer[..<count]
                readSizes.insert(count)
            }
            endpoint.watch(toSend.isEmpty ? .readable : [.readable, .writable])
        }
    }

    private func transfer(
        _ count: Int, seed: UInt64, _ change: (inout Link) -> Void
    ) -> (sender: End, receiver: End, bytes: [UInt8], violation: String?) {
        let world = World(seed: seed)
        var link = Link()
        change(&link)
        let connection = Connection(in: world, up: Link(), down: link)
        let bytes = world.random.bytes(count)
        let sender = End(connection.server, bytes)
        let receiver = End(connection.client)
        world.run(until: world.now + .seconds(60))
        return (sender, receiver, bytes, world.violation)
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func allBytesArriveInOrderAndThenTheEnd(seed: UInt64) {
        var random = Random(seed: seed)
        let link = Link(&random, tiny: true)
        let (sender, receiver, bytes, violation) = transfer(5000, seed: seed) { $0 = link }
        #expect(violation == nil)
        #expect(receiver.received == bytes)
        #expect(receiver.ending == .end)
        #expect(sender.toSend.isEmpty)
    }

    @Test func aSmallBufferBlocksItsWriter() {
        let (sender, receiver, bytes, _) = transfer(5000, seed: 1) {
            $0.sendBuffer = 100
            $0.receiveBuffer = 100
        }
        #expect(sender.blocked > 10)
        #expect(receiver.received == bytes)
    }

    @Test func segmentsSplitWhatWasWrittenAtOnce() {
        let (_, receiver, _, _) = transfer(5000, seed: 1) {
            $0.segment = 1...50
            $0.latency = 100...5000
        }
        #expect(receiver.readSizes.count > 5)
    }

    @Test func aCutEndsTheStreamEarly() {
        let (_, receiver, bytes, _) = transfer(5000, seed: 1) { $0.faults = [(777, .cut)] }
        #expect(receiver.received == Array(bytes[..<777]))
        #expect(receiver.ending == .end)
    }

    @Test func aResetIsSeenAtBothEnds() {
        let (sender, receiver, _, _) = transfer(5000, seed: 1) {
            $0.faults = [(777, .reset(keepsArrived: true))]
        }
        #expect(receiver.received.count <= 777)
        #expect(receiver.ending == .reset)
        #expect(sender.ending == .reset)
    }

    @Test func aCorruptedByteIsTheOnlyChange() {
        let (_, receiver, bytes, _) = transfer(5000, seed: 1) {
            $0.faults = [(777, .corrupt(0x10))]
        }
        var expected = bytes
        expected[777] ^= 0x10
        #expect(receiver.received == expected)
    }

    @Test func aSwallowedStreamEndsAtNeitherEnd() {
        let (_, receiver, bytes, _) = transfer(5000, seed: 1) { $0.faults = [(777, .swallow)] }
        #expect(receiver.received == Array(bytes[..<777]))
        #expect(receiver.ending == nil)
    }
}
