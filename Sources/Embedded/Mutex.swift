import Builtin
import EmbeddedC

/// Replaces `Synchronization.Mutex`, which Embedded Swift lacks, with the operations that the
/// library uses: a value and a futex of four bytes.
package struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    private let word = Cell<UInt32>(0)
    private let value: Cell<Value>

    package init(_ value: consuming sending Value) { self.value = Cell(value) }

    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        embedded_lock(word.address)
        defer { embedded_unlock(word.address) }
        return try body(&value.address.pointee)
    }

    package borrowing func withLockIfAvailable<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result? {
        guard embedded_try_lock(word.address) else { return nil }
        defer { embedded_unlock(word.address) }
        return try body(&value.address.pointee)
    }
}

/// A value at a fixed address.
@_rawLayout(like: Value, movesAsLike)
private struct Cell<Value: ~Copyable>: ~Copyable {
    init(_ value: consuming Value) { address.initialize(to: value) }

    deinit { _ = address.deinitialize(count: 1) }

    @inline(__always) var address: UnsafeMutablePointer<Value> {
        UnsafeMutablePointer(Builtin.addressOfRawLayout(self))
    }
}
