import CShims

/// Bytes that are never printed, and are overwritten when they are released. They are shared, not
/// copied.
package final class SecretBytes: @unchecked Sendable, CustomStringConvertible {
    private let storage: UnsafeMutableRawBufferPointer

    package convenience init(_ bytes: UnsafeRawBufferPointer) {
        self.init(SecretBytes.copy(bytes))
    }

    package convenience init(_ text: String) {
        var text = text
        self.init(text.withUTF8 { SecretBytes.copy(UnsafeRawBufferPointer($0)) })
    }

    /// Takes over storage, which `fill` writes; nil if `fill` returns false.
    convenience init?(count: Int, fill: (UnsafeMutableRawBufferPointer) -> Bool) {
        let storage = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
        guard fill(storage) else {
            SecretBytes.release(storage)
            return nil
        }
        self.init(storage)
    }

    private init(_ storage: UnsafeMutableRawBufferPointer) { self.storage = storage }

    deinit { SecretBytes.release(storage) }

    package var count: Int { storage.count }
    package var description: String { "(secret)" }

    /// Calls `body` with the bytes, which are valid until it returns.
    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        // Swift may release an object after its last use, which can be in here.
        withExtendedLifetime(self) { body(UnsafeRawBufferPointer(storage)) }
    }

    package func isEqual(to other: SecretBytes) -> Bool {
        storage.count == other.storage.count && storage.elementsEqual(other.storage)
    }

    private static func copy(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutableRawBufferPointer {
        let storage = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        storage.copyMemory(from: bytes)
        return storage
    }

    private static func release(_ storage: UnsafeMutableRawBufferPointer) {
        shim_wipe(storage.baseAddress, storage.count)
        storage.deallocate()
    }
}
