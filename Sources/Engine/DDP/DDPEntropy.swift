import CShims
import Documents
import Session

/// Draws seeds and ids from the system.
struct DDPEntropy: DDPRandomSource {
    mutating func seed() -> String {
        DDPEntropy.text("0123456789abcdef", 20)
    }

    mutating func subscriptionID() -> String {
        DDPEntropy.text("23456789ABCDEFGHJKLMNPQRSTWXYZabcdefghijkmnopqrstuvwxyz", 17)
    }

    /// A text of characters that are equally likely.
    private static func text(_ alphabet: StaticString, _ count: Int) -> String {
        let size = UInt64(alphabet.utf8CodeUnitCount)
        let text = [UInt8](unsafeUninitializedCapacity: count) { text, initialized in
            for index in 0..<count {
                var bits: UInt64 = 0
                withUnsafeMutableBytes(of: &bits) { shim_random_bytes($0.baseAddress, $0.count) }
                text[index] = alphabet.utf8Start[Int(bits.multipliedFullWidth(by: size).high)]
            }
            initialized = count
        }
        return String(decoding: text, as: UTF8.self)
    }
}
