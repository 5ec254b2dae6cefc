/// Draws ids and numbers that follow from seeds.
package struct RandomStream: Sendable {
    private var generator: Alea

    package init(seeds: [String]) { generator = Alea(seeds) }

    /// The next number, from 0 to below 1.
    package mutating func fraction() -> Double { generator.fraction() }

    /// A position in a list.
    /// - Parameter count: the list's, at least 1.
    package mutating func index(below count: Int) -> Int {
        min(Int(generator.fraction() * Double(count)), count - 1)
    }

    /// An id as Meteor gives to documents: letters and digits that are not easily confused.
    package mutating func id(_ count: Int = 17) -> String {
        text("23456789ABCDEFGHJKLMNPQRSTWXYZabcdefghijkmnopqrstuvwxyz", count)
    }

    package mutating func hexString(_ count: Int) -> String { text("0123456789abcdef", count) }

    /// A text as long as a secret. It is not secret, because it follows from the seeds.
    package mutating func secret(_ count: Int = 43) -> String {
        text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", count)
    }

    private mutating func text(_ alphabet: StaticString, _ count: Int) -> String {
        var bytes: [UInt8] = []
        for _ in 0..<max(count, 0) {
            bytes.append(alphabet.utf8Start[index(below: alphabet.utf8CodeUnitCount)])
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
