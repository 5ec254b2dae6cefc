import CShims
import Documents
import Session

/// Draws seeds and ids from the system, which is asked once for several of them.
struct DDPEntropy: DDPRandomSource {
    private static let poolSize = 64
    private var pool: [UInt64] = []

    mutating func seed() -> String { text("0123456789abcdef", 20) }

    mutating func subscriptionID() -> String {
        text("23456789ABCDEFGHJKLMNPQRSTWXYZabcdefghijkmnopqrstuvwxyz", 17)
    }

    /// A text of characters that are equally likely.
    private mutating func text(_ alphabet: StaticString, _ count: Int) -> String {
        let size = UInt64(alphabet.utf8CodeUnitCount)
        let text = (0..<count).map { _ in
            alphabet.utf8Start[Int(word().multipliedFullWidth(by: size).high)]
        }
        return String(decoding: text, as: UTF8.self)
    }

    private mutating func word() -> UInt64 {
        if let word = pool.popLast() { return word }
        pool = [UInt64](unsafeUninitializedCapacity: DDPEntropy.poolSize) { words, initialized in
            let bytes = UnsafeMutableRawBufferPointer(words)
            shim_random_bytes(bytes.baseAddress, bytes.count)
            initialized = words.count
        }
        return pool.removeLast()
    }
}
