import Testing

@testable import Wire

@Suite struct ByteBufferTests {
    @Test func anEmptyBufferHoldsNoMemory() {
        let buffer = ByteBuffer()
        #expect(buffer.count == 0)
        #expect(buffer.capacity == 0)
        #expect(Array(buffer.readable) == [])
    }

    @Test func appendingNothingStoresNothing() {
        var buffer = ByteBuffer()
        buffer.append(UnsafeRawBufferPointer(start: nil, count: 0))
        buffer.append("")
        #expect(buffer.count == 0)
        #expect(buffer.capacity == 0)
    }

    @Test func bytesAreAppendedAndTakenFromTheFront() {
        var buffer = ByteBuffer()
        buffer.append("hello")
        buffer.append(0x21)
        buffer.consume(4)
        #expect(Array(buffer.readable) == Array("o!".utf8))
        buffer.removeLast(1)
        #expect(Array(buffer.readable) == Array("o".utf8))
        #expect(buffer.count == 1)
    }

    @Test func secretBytesStayWhenStorageGrows() {
        var buffer = ByteBuffer()
        buffer.isSecret = true
        buffer.append(text(300))
        buffer.consume(100)
        buffer.append(text(5000))
        #expect(Array(buffer.readable) == Array(bytesOf(300)[100...]) + bytesOf(5000))
        buffer.removeAll(keeping: 0)
        #expect(buffer.capacity == 0)
    }

    @Test func roomIsMadeAtTheFrontBeforeStorageGrows() {
        var buffer = ByteBuffer()
        buffer.append(text(256))
        let capacity = buffer.capacity
        buffer.consume(200)
        buffer.append(text(150))
        #expect(buffer.capacity == capacity)
        #expect(Array(buffer.readable) == Array(bytesOf(256)[200...]) + bytesOf(150))
    }

    @Test func largeStorageIsReleased() {
        var buffer = ByteBuffer()
        buffer.append(text(10_000))
        buffer.removeAll(keeping: 20_000)
        #expect(buffer.capacity >= 10_000)
        buffer.removeAll(keeping: 4096)
        #expect(buffer.capacity == 0)
        buffer.append("again")
        #expect(Array(buffer.readable) == Array("again".utf8))
    }

    @Test func lessMayBeCommittedThanReserved() {
        var buffer = ByteBuffer()
        let room = buffer.reserve(100)
        #expect(room.count >= 100)
        room[0] = 7
        room[1] = 8
        buffer.commit(2)
        #expect(Array(buffer.readable) == [7, 8])
    }

    @Test func itBehavesLikeAnArray() {
        let seed: UInt64 = 61_121
        var random = SeededGenerator(seed: seed)
        var buffer = ByteBuffer()
        var model: [UInt8] = []
        for round in 0..<5000 {
            switch Int.random(in: 0..<8, using: &random) {
            case 0..<4:
                let fresh = bytesOf(Int.random(in: 0..<400, using: &random))
                fresh.withUnsafeBytes { buffer.append($0) }
                model += fresh
            case 4, 5:
                let count = Int.random(in: 0...model.count, using: &random)
                buffer.consume(count)
                model.removeFirst(count)
            case 6:
                let count = Int.random(in: 0...model.count, using: &random)
                buffer.removeLast(count)
                model.removeLast(count)
            default:
                guard model.count > 4000 else { continue }
                buffer.removeAll(keeping: 1024)
                model = []
            }
            guard Array(buffer.readable) == model, buffer.count == model.count else {
                Issue.record("seed \(seed), round \(round)")
                return
            }
        }
    }

    /// ASCII, so that text and bytes are the same.
    private func bytesOf(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 13) & 0x7F }
    }

    private func text(_ count: Int) -> String { String(decoding: bytesOf(count), as: UTF8.self) }
}
