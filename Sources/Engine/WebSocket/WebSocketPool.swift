import CShims
import Session
import Wire

/// State that all WebSockets of a loop share: buffers that the connections use one after the other,
/// masking keys, and equal options.
///
/// Unchecked because its fields belong to the loop's owner (see `Loop.enter`).
final class WebSocketPool: LoopLocal, @unchecked Sendable {
    /// The size of the one receive buffer, and so of one read.
    static let receiveBytes = 256 << 10
    /// The most messages that are delivered together.
    static let messagesPerBatch = 4096
    private static let leastPerBatch = 64
    /// A larger outgoing buffer is not kept.
    static let spareBytes = 1 << 20

    /// Assembled messages that will be delivered together; empty between two reads.
    @exclusivity(unchecked) var batch: [rt_message] = []
    /// Storage for unsent bytes, lent to one connection after the other.
    @exclusivity(unchecked) var spareOutgoing = ByteBuffer()
    /// Storage for messages that are assembled, lent in the same way.
    @exclusivity(unchecked) var spareAssembly = ByteBuffer()
    let maskKeys = MaskKeys { shim_random_bytes($0.baseAddress, $0.count) }
    /// The options of the connection that began last.
    private var lastOptions: Shared<WebSocketConfiguration>?
    private var receiveStorage: UnsafeMutableRawBufferPointer?
    @exclusivity(unchecked) private var batchLimit = WebSocketPool.messagesPerBatch
    private var wholeStorage: UnsafeMutableBufferPointer<rt_message>?

    /// The loop's instance.
    static func of(_ loop: Loop) -> WebSocketPool {
        loop.local(WebSocketPool.self) { WebSocketPool() }
    }

    deinit {
        receiveStorage?.deallocate()
        wholeStorage?.deallocate()
    }

    /// The buffer for every read of this loop; valid until the next read.
    func receiveBuffer() -> UnsafeMutableRawBufferPointer {
        if let receiveStorage { return receiveStorage }
        let made = UnsafeMutableRawBufferPointer.allocate(
            byteCount: WebSocketPool.receiveBytes, alignment: 64)
        receiveStorage = made
        return made
    }

    /// The list of the whole messages in a read; valid until the next read.
    func wholeMessages() -> UnsafeMutableBufferPointer<rt_message> {
        batchLimit = min(WebSocketPool.messagesPerBatch, batchLimit + batchLimit / 8)
        return UnsafeMutableBufferPointer(rebasing: storageOfWhole()[..<batchLimit])
    }

    /// A pause stopped delivery after so many messages of a batch. Those after them are read again
    /// later, so the next batches are about as large as what was delivered.
    func stopped(after count: Int) {
        batchLimit = max(WebSocketPool.leastPerBatch, min(batchLimit, count))
    }

    private func storageOfWhole() -> UnsafeMutableBufferPointer<rt_message> {
        if let wholeStorage { return wholeStorage }
        let made = UnsafeMutableBufferPointer<rt_message>.allocate(
            capacity: WebSocketPool.messagesPerBatch)
        made.initialize(repeating: rt_message())
        wholeStorage = made
        return made
    }

    /// Returns the previous connection's options if they are equal, so that both share memory.
    func shared(_ options: Shared<WebSocketConfiguration>) -> Shared<WebSocketConfiguration> {
        if let lastOptions, lastOptions.value == options.value { return lastOptions }
        lastOptions = options
        return options
    }
}
