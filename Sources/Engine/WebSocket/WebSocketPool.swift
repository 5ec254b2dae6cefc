import CShims
import Session
import Wire

/// What all WebSockets of a loop share: buffers that one connection uses after the other, masking
/// keys, and options that are the same.
///
/// Unchecked because its fields belong to the loop's owner (see `Loop.enter`).
final class WebSocketPool: LoopLocal, @unchecked Sendable {
    /// One read; one buffer of this size serves all connections.
    static let receiveBytes = 256 << 10
    /// The most messages that are handed on together.
    static let messagesPerBatch = 4096
    /// The most of what is sent that is kept.
    static let spareBytes = 1 << 20

    /// Assembled messages that wait to be handed on together; empty between two reads.
    @exclusivity(unchecked) var batch: [rt_message] = []
    /// Storage for what is sent, lent to one connection after the other.
    @exclusivity(unchecked) var spareOutgoing = ByteBuffer()
    /// Storage for messages that are assembled, lent likewise.
    @exclusivity(unchecked) var spareAssembly = ByteBuffer()
    let maskKeys = MaskKeys { shim_random_bytes($0.baseAddress, $0.count) }
    /// Options of the connection that began last.
    private var lastOptions: Shared<WebSocketConfiguration>?
    private var receiveStorage: UnsafeMutableRawBufferPointer?
    private var wholeStorage: UnsafeMutableBufferPointer<rt_message>?

    /// The loop's.
    static func of(_ loop: Loop) -> WebSocketPool {
        loop.local(WebSocketPool.self) { WebSocketPool() }
    }

    deinit {
        receiveStorage?.deallocate()
        wholeStorage?.deallocate()
    }

    /// The buffer that every read of this loop goes into; valid until the next read.
    func receiveBuffer() -> UnsafeMutableRawBufferPointer {
        if let receiveStorage { return receiveStorage }
        let made = UnsafeMutableRawBufferPointer.allocate(
            byteCount: WebSocketPool.receiveBytes, alignment: 64)
        receiveStorage = made
        return made
    }

    /// Where the whole messages of a read are noted; valid until the next read.
    func wholeMessages() -> UnsafeMutableBufferPointer<rt_message> {
        if let wholeStorage { return wholeStorage }
        let made = UnsafeMutableBufferPointer<rt_message>.allocate(
            capacity: WebSocketPool.messagesPerBatch)
        made.initialize(repeating: rt_message())
        wholeStorage = made
        return made
    }

    /// Options that say the same as those of the connection before are kept once for both.
    func shared(_ options: Shared<WebSocketConfiguration>) -> Shared<WebSocketConfiguration> {
        if let lastOptions, lastOptions.value == options.value { return lastOptions }
        lastOptions = options
        return options
    }
}
