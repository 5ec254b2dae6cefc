import Testing

@testable import Engine

struct ReadShareTests {
    /// epoll reports up to 128 sockets in a turn.
    @Test func aTurnHasAnEnd() {
        for count in 0...128 {
            let share = ReadShare.of(ready: count)
            #expect(share >= 64 << 10 && share <= Loop.bytesPerTurn, "\(count)")
            #expect(share * count <= 8 << 20, "\(count)")
        }
        #expect(ReadShare.of(ready: 8) == Loop.bytesPerTurn)
    }
}
