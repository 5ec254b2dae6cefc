package import CShims
package import Wire

/// Passes the bytes of a read through a session, and delivers what it finds. Implemented by the
/// connection, and by a simulated one.
package protocol WebSocketWalker: AnyObject {
    /// The receiver of messages, looked up once for each read.
    associatedtype Taker

    var session: UnsafeMutablePointer<WebSocketSession>? { get }
    var taker: Taker { get }
    /// Whether messages may be delivered to the taker that was looked up last.
    var isOpen: Bool { get }

    /// Called if `isOpen` is false. It may replace the taker.
    /// - Returns: the count of bytes used, if no more may be delivered now.
    func stops(_ input: UnsafeRawBufferPointer, _ offset: Int, _ taker: inout Taker) -> Int?

    /// Delivers messages that lie in `input`.
    /// - Returns: the count of bytes used, if not all messages could be delivered.
    func deliverWhole(
        _ messages: UnsafeBufferPointer<rt_message>, of input: UnsafeRawBufferPointer,
        from start: Int, to taker: Taker
    ) -> Int?

    /// Takes an assembled message, which may wait for others before delivery.
    func take(assembled kind: MessageKind, _ range: Range<Int>, for taker: Taker)

    func deliverPiece(_ kind: MessageKind, _ range: Range<Int>, _ isFirst: Bool, _ isLast: Bool)

    /// Delivers the assembled messages that wait.
    func deliverAssembled()

    /// Called when this turn may not inflate more. The rest waits for a later turn.
    func allowanceSpent()

    /// Handles a pong, a close frame, or a violation.
    func handle(_ step: WebSocketSession.Step)

    /// Called for each step, with the count of bytes that it used.
    func found(_ step: WebSocketSession.Step, using bytes: Int)
}

extension WebSocketWalker {
    /// Passes the bytes of a read through the session.
    /// - Parameter whole: storage for the list of whole messages.
    /// - Returns: the count of bytes used.
    @inlinable @inline(__always)
    package func walk(
        over input: UnsafeRawBufferPointer, from start: Int, now: Instant,
        _ whole: UnsafeMutableBufferPointer<rt_message>
    ) -> Int {
        var taker = taker
        var offset = start
        // After a compressed message the next one is likely compressed, too.
        var looksForWhole = true
        while true {
            if !isOpen, let used = stops(input, offset, &taker) {
                deliverAssembled()
                return used
            }
            let first = offset
            var count = 0
            if looksForWhole {
                count = session?.pointee.wholeMessages(input, &offset, into: whole) ?? 0
            }
            looksForWhole = true
            if count > 0 {
                session?.pointee.received(messagesAt: now)
                deliverAssembled()
                let messages = UnsafeBufferPointer(rebasing: whole[..<count])
                offset = deliverWhole(messages, of: input, from: first, to: taker) ?? offset
                continue
            }
            guard let step = session?.pointee.next(input, &offset, now: now) else {
                return input.count
            }
            found(step, using: offset - first)
            switch step {
            case .message(let kind, let range):
                session?.pointee.received(messagesAt: now)
                deliverAssembled()
                whole[0] = rt_message(kind, range)
                let message = UnsafeBufferPointer(rebasing: whole[..<1])
                offset = deliverWhole(message, of: input, from: first, to: taker) ?? offset
            case .assembledMessage(let kind, let range):
                session?.pointee.received(messagesAt: now)
                looksForWhole = false
                take(assembled: kind, range, for: taker)
            case .piece(let kind, let range, let isFirst, let isLast):
                session?.pointee.received(messagesAt: now)
                deliverPiece(kind, range, isFirst, isLast)
            case .needMoreBytes:
                deliverAssembled()
                return input.count
            case .allowanceSpent:
                deliverAssembled()
                allowanceSpent()
                return offset
            case .nothing: break
            case .deliverFirst: deliverAssembled()
            case .pong, .closed, .failed:
                deliverAssembled()
                handle(step)
            }
        }
    }
}

extension rt_message {
    package init(_ kind: MessageKind, _ range: Range<Int>) {
        self.init(
            offset: UInt64(range.lowerBound), length: UInt64(range.count), kind: kind.rawValue,
            reserved: 0)
    }
}
