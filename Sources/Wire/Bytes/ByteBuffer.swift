import CShims

/// A growing sequence of bytes with one owner: written at its end, read and consumed from its
/// front. Storage is allocated at the first write and doubles; it is not zeroed. Callers bound its
/// growth: they check a limit before they append.
///
/// It grows by `realloc`: the kernel moves the pages of large storage instead of copying them, and
/// pages that were never written take no memory. So a body of 64 MiB never takes twice its size.
package struct ByteBuffer: ~Copyable {
    @usableFromInline package private(set) var storage: UnsafeMutableRawPointer?
    package private(set) var capacity = 0
    @usableFromInline package private(set) var head = 0
    @usableFromInline package private(set) var tail = 0

    /// Whether storage is overwritten before it is freed.
    package var isSecret = false

    package init() {}

    deinit { ByteBuffer.free(storage, capacity, wipes: isSecret) }

    private static func free(
        _ storage: UnsafeMutableRawPointer?, _ capacity: Int, wipes: Bool
    ) {
        if wipes { shim_wipe(storage, capacity) }
        shim_free(storage)
    }

    /// Bytes that were written and not yet consumed.
    @inlinable package var count: Int { tail - head }
    @inlinable package var isEmpty: Bool { tail == head }

    /// The unconsumed bytes, valid until the next mutation.
    @inlinable package var readable: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            start: storage.map { UnsafeRawPointer($0 + head) }, count: tail - head)
    }

    /// At least `minimum` writable bytes after the readable ones. `commit` makes them readable.
    @inline(__always)
    package mutating func reserve(_ minimum: Int) -> UnsafeMutableRawBufferPointer {
        if capacity - tail < minimum { makeRoom(for: minimum) }
        return UnsafeMutableRawBufferPointer(
            start: storage.map { $0 + tail }, count: capacity - tail)
    }

    /// Makes the first `count` bytes of the last `reserve` readable.
    package mutating func commit(_ count: Int) {
        precondition(count >= 0 && count <= capacity - tail, "commit beyond what was reserved")
        tail += count
    }

    /// Whether there is memory for so many more bytes. To be asked before what a peer sends is
    /// appended.
    @inline(__always)
    package func hasMemory(for more: Int) -> Bool {
        more <= capacity - tail || Memory.has(grown(for: count + more))
    }

    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        reserve(bytes.count).baseAddress?.copyMemory(from: source, byteCount: bytes.count)
        tail += bytes.count
    }

    /// Appends bytes, followed by one more.
    package mutating func append(_ bytes: UnsafeRawBufferPointer, then byte: UInt8) {
        let room = reserve(bytes.count + 1)
        if let source = bytes.baseAddress, bytes.count > 0 {
            room.baseAddress?.copyMemory(from: source, byteCount: bytes.count)
        }
        room[bytes.count] = byte
        tail += bytes.count + 1
    }

    /// Writes a NUL after the readable bytes, without making it readable.
    package mutating func terminate() { reserve(1)[0] = 0 }

    package mutating func append(_ byte: UInt8) {
        reserve(1)[0] = byte
        tail += 1
    }

    package mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    /// Removes `count` bytes from the front.
    package mutating func consume(_ count: Int) {
        precondition(count >= 0 && count <= tail - head, "consume beyond what is readable")
        head += count
        if head == tail {
            head = 0
            tail = 0
        }
    }

    /// Removes `count` bytes from the end.
    package mutating func removeLast(_ count: Int) {
        precondition(count >= 0 && count <= tail - head, "remove beyond what is readable")
        tail -= count
    }

    /// Empties the buffer. Storage of more than `keeping` bytes is freed.
    package mutating func removeAll(keeping: Int) {
        head = 0
        tail = 0
        if capacity > keeping {
            ByteBuffer.free(storage, capacity, wipes: isSecret)
            storage = nil
            capacity = 0
        }
    }

    private func grown(for needed: Int) -> Int { max(needed, capacity * 2, 256) }

    /// Moves the bytes to the front. If that does not make enough room, it also enlarges the
    /// storage at least twofold.
    private mutating func makeRoom(for minimum: Int) {
        let live = tail - head
        let needed = live + minimum
        let fits = needed <= capacity && head >= live
        if let storage, head > 0 { storage.copyMemory(from: storage + head, byteCount: live) }
        head = 0
        tail = live
        if fits { return }
        let grown = grown(for: needed)
        if isSecret {
            // A reallocation would leave a copy where it moves the storage from.
            let new = shim_grow(nil, grown)
            if let storage { new?.copyMemory(from: storage, byteCount: live) }
            ByteBuffer.free(storage, capacity, wipes: true)
            storage = new
        } else {
            storage = shim_grow(storage, grown)
        }
        capacity = grown
    }
}
