/// The generator that client and server of Meteor share (M9): from equal seeds both draw the
/// same numbers, bit for bit. It cannot be used for secrets.
struct Alea: Sendable {
    private var state0: Double
    private var state1: Double
    private var state2: Double
    private var carry = 1.0

    init(_ seeds: [String]) {
        var hash = AleaHash()
        (state0, state1, state2) = (hash.add(" "), hash.add(" "), hash.add(" "))
        for seed in seeds {
            state0 = Alea.difference(state0, hash.add(seed))
            state1 = Alea.difference(state1, hash.add(seed))
            state2 = Alea.difference(state2, hash.add(seed))
        }
    }

    private static func difference(_ state: Double, _ hash: Double) -> Double {
        state < hash ? state - hash + 1 : state - hash
    }

    /// The next number, from 0 to below 1.
    mutating func fraction() -> Double {
        let sum = 2_091_639 * state0 + carry * 0x1p-32
        carry = sum.rounded(.towardZero)
        (state0, state1, state2) = (state1, state2, sum - carry)
        return state2
    }
}

/// Turns seeds into a state. It carries over from seed to seed.
private struct AleaHash {
    private var sum = 4_022_871_197.0

    mutating func add(_ text: String) -> Double {
        for unit in text.utf16 {
            sum += Double(unit)
            var hash = 0.02519603282416938 * sum
            sum = AleaHash.low(hash)
            hash -= sum
            hash *= sum
            sum = AleaHash.low(hash)
            hash -= sum
            sum += hash * 0x1p32
        }
        return AleaHash.low(sum) * 0x1p-32
    }

    /// The whole part modulo 2^32. The sum can pass 2^32, but never 2^34, and is not negative.
    private static func low(_ value: Double) -> Double {
        Double(UInt32(truncatingIfNeeded: UInt64(value)))
    }
}
