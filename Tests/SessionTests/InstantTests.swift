import Session
import Testing

@Suite struct InstantTests {
    @Test(arguments: [
        (Duration.seconds(10), "10 s"), (.milliseconds(1500), "1500 ms"), (.zero, "0 s"),
        (.seconds(-3), "-3 s"), (.milliseconds(-1), "-1 ms"), (.microseconds(1), "0 s"),
        (.milliseconds(Int64.max), "9223372036854775807 ms"),
        (.seconds(Int64.max), "9223372036854775807 s"),
    ])
    func durationsAreReadable(_ duration: Duration, _ text: String) {
        #expect(duration.readable == text)
    }

    @Test func sumsStopAtTheEndOfTime() {
        func at(_ milliseconds: UInt64) -> Instant {
            Instant(nanoseconds: milliseconds * 1_000_000)
        }
        let late = Instant(nanoseconds: .max - 5)
        #expect(late + .seconds(1) == Instant(nanoseconds: .max))
        #expect(at(0) + .seconds(Int64.max) == Instant(nanoseconds: .max))
        #expect(at(5) + .seconds(-1) == at(5))
        #expect(at(0) - at(5) == .zero)
        #expect(at(5) - at(2) == .milliseconds(3))
    }

    /// The machines rely on it.
    @Test func doublesOfTheLongestOptionFit() {
        #expect((Duration.longestOption * 2.5).clampedNanoseconds < UInt64(Int64.max))
    }
}
