/// A splittable source of random numbers (SplitMix64 with its own gamma, Steele, Lea, Flood 2014).
/// Each part of a run gets a source split off for it, so that one part drawing more or less does
/// not affect the others. The standard library's algorithms are not used, because they may change,
/// and a seed must always mean the same.
package struct Random: Sendable {
    private var state: UInt64
    private let gamma: UInt64

    package init(seed: UInt64) {
        state = Random.mix(seed &+ 0x9E37_79B9_7F4A_7C15)
        gamma = 0x9E37_79B9_7F4A_7C15
    }

    private init(state: UInt64, gamma: UInt64) {
        self.state = state
        self.gamma = gamma | 1
    }

    package mutating func next() -> UInt64 {
        state &+= gamma
        return Random.mix(state)
    }

    /// A new source, independent from here on.
    package mutating func split() -> Random {
        let state = next()
        return Random(state: state, gamma: next())
    }

    /// 0 up to `bound` - 1; 0 if `bound` is 1 or less.
    package mutating func below(_ bound: Int) -> Int {
        bound <= 1 ? 0 : Int(truncatingIfNeeded: next() % UInt64(bound))
    }

    package mutating func within(_ range: ClosedRange<Int>) -> Int {
        range.lowerBound + below(range.upperBound - range.lowerBound + 1)
    }

    package mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

    /// One of the choices; there must be at least one.
    package mutating func pick<T>(_ choices: [T]) -> T { choices[below(choices.count)] }

    /// A length up to `limit`: mostly short, often where the frame header changes its form.
    package mutating func length(upTo limit: Int) -> Int {
        switch below(10) {
        case 0: return min(limit, pick([0, 1, 2, 125, 126, 127, 128, 255, 65_535, 65_536]))
        case 1: return below(limit + 1)
        case 2: return limit - min(limit, below(3))
        default: return below(min(limit, pick([8, 64, 300, 3000])) + 1)
        }
    }

    package mutating func milliseconds(_ range: ClosedRange<Int>) -> Duration {
        .microseconds(within((range.lowerBound * 1000)...(range.upperBound * 1000)))
    }

    package mutating func bytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { bytes, used in
            let raw = UnsafeMutableRawBufferPointer(bytes)
            var index = 0
            while index + 8 <= count {
                raw.storeBytes(of: next().littleEndian, toByteOffset: index, as: UInt64.self)
                index += 8
            }
            var rest = next()
            while index < count {
                raw[index] = UInt8(truncatingIfNeeded: rest)
                rest >>= 8
                index += 1
            }
            used = count
        }
    }

    private static func mix(_ value: UInt64) -> UInt64 {
        var z = value
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
