import CShims
import Glibc

/// Several items of an inbox as one block of memory: the header that C's batch structs share, a
/// table of the items' own blocks, and an array of the structs with which these begin.
struct InboxBatch {
    private struct Header {
        var structBytes: Int
        var structs: UnsafeMutableRawPointer
        var count: Int
    }

    let memory: UnsafeMutableRawPointer
    private let structBytes: Int

    init(_ count: Int, structBytes: Int) {
        self.structBytes = structBytes
        let table = MemoryLayout<Header>.size
        let structs = table + count * MemoryLayout<UnsafeMutableRawPointer>.size
        memory = shim_grow(nil, structs + count * structBytes)
        memory.initializeMemory(
            as: Header.self,
            to: Header(structBytes: table, structs: memory + structs, count: count))
    }

    private init(_ memory: UnsafeMutableRawPointer) {
        self.memory = memory
        structBytes = 0
    }

    private var header: Header { memory.load(as: Header.self) }

    private var items: UnsafeMutablePointer<UnsafeMutableRawPointer> {
        (memory + MemoryLayout<Header>.size)
            .assumingMemoryBound(to: UnsafeMutableRawPointer.self)
    }

    func set(_ item: UnsafeMutableRawPointer, at index: Int) {
        (items + index).initialize(to: item)
        memcpy(header.structs + index * structBytes, item, structBytes)
    }

    /// Frees a batch with its items.
    static func free(_ memory: UnsafeMutableRawPointer?) {
        guard let memory else { return }
        let batch = InboxBatch(memory)
        for index in 0..<batch.header.count { Glibc.free(batch.items[index]) }
        Glibc.free(memory)
    }
}

extension Inbox {
    /// Frees memory that `takeBatch` returned.
    package static func free(batch: UnsafeMutableRawPointer?) { InboxBatch.free(batch) }
}
