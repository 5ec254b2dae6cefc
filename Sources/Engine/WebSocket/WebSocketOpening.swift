import CShims
import Session
import Synchronization
import Wire

// The way to an open connection, all on the loop's thread: libcurl's connection, the handshake,
// redirects, and the answer of a server that refuses.

/// The handshake under way.
final class Handshaking {
    let handshake: ClientHandshake
    var reader: ResponseHeadReader
    let request: [UInt8]
    var sent = 0
    /// How long its answer may take, when that is what ends it.
    var answerTimeout: Duration?

    init(_ handshake: ClientHandshake, headerLimit: Int) {
        self.handshake = handshake
        reader = ResponseHeadReader(limit: headerLimit)
        request = handshake.request
    }
}

/// The answer of a server that refused, while its body comes.
final class Refused {
    let head: ResponseHead
    var body: RefusalBody
    let deadline: Instant

    /// A person is to read it: neither much of it nor much waiting for it is of use.
    static let bodyLimit = 64 << 10
    private static let patience = Duration.seconds(2)

    init(_ head: ResponseHead, now: Instant) {
        self.head = head
        body = RefusalBody(of: head, limit: Refused.bodyLimit)
        deadline = now + Refused.patience
    }
}

extension WebSocketConnection {
    /// Begins an attempt: the first, or one after a loss.
    func begin() {
        guard case .idle = phase, gate.load(ordering: .acquiring) & ~Gate.paused == 0 else {
            return
        }
        shareOptions()
        attempt = Shared(WebSocketAttempt(configuration))
        lastError = nil
        reachedServer = false
        if reconnection == nil {
            reconnection = configuration.reconnect.map {
                Reconnection($0, afterNormalClose: configuration.reconnectsAfterNormalClose)
            }
        }
        openDeadline =
            configuration.openTimeout > .zero ? Loop.now() + configuration.openTimeout : nil
        connect()
        updateTimer()
    }

    private func connect() {
        do throws(RealtimeError) {
            let connect = try CurlConnect(
                to: currentURL, by: configuration.network,
                within: openDeadline.map { $0 - Loop.now() }, multi: CurlMulti.of(loop),
                owner: self)
            phase = .connecting(connect)
            log("connecting to \(currentURL.displayName)")
        } catch {
            // Told in the next turn, never inside start.
            failsStart = true
            lastError = error
            scheduleTurn()
        }
    }

    func sendHandshake(_ transport: Transport, _ handshaking: Handshaking) {
        while handshaking.sent < handshaking.request.count, !watch.isWriteBlocked {
            let result = handshaking.request.withUnsafeBytes {
                transport.write(UnsafeRawBufferPointer(rebasing: $0[handshaking.sent...]))
            }
            switch result {
            case .bytes(let count): handshaking.sent += count
            case .wouldBlock: watch.isWriteBlocked = true
            // The reader sees the end, and what the server said before it.
            case .failed: return
            }
        }
    }

    /// Takes what was read before the connection is open.
    /// - Returns: how many bytes were used; the rest are frames.
    func takeHandshake(
        _ input: UnsafeRawBufferPointer, _ transport: Transport, _ handshaking: Handshaking
    ) -> Int {
        do throws(RealtimeError) {
            switch try handshaking.reader.read(input) {
            case .needMoreBytes: return input.count
            case .head(let head, let used):
                if head.status == 101 {
                    let outcome = try handshaking.handshake.verify(head)
                    opened(transport, outcome, head)
                    return used
                }
                if try attempt?.value.follows(head, configuration) ?? false {
                    Log.write(
                        .debug, "redirected by \(head.status) to \(currentURL.displayName)")
                    dropTransport()
                    phase = .idle
                    connect()
                } else {
                    let rest = UnsafeRawBufferPointer(rebasing: input[used...])
                    phase = .refused(transport, Refused(head, now: Loop.now()))
                    takeRefusal(rest)
                }
            }
        } catch {
            fail(error)
        }
        return input.count
    }

    func takeRefusal(_ input: UnsafeRawBufferPointer) {
        guard case .refused(_, let refused) = phase else { return }
        refused.body.read(input)
        if refused.body.isComplete { failRefused() }
    }

    /// The server's answer is whole, or as much of it as is waited for.
    func failRefused() {
        guard case .refused(_, let refused) = phase else { return }
        fail(
            ClientHandshake.refusal(
                by: currentURL, HTTPResponse(refused.head, body: refused.body.bytes)))
    }

    private func opened(
        _ transport: Transport, _ outcome: ClientHandshake.Outcome, _ head: ResponseHead
    ) {
        var configuration = configuration
        configuration.url = currentURL
        configuration.deliversPieces = handlers.piece != nil
        if currentURL == self.configuration.url { attempt = nil }
        dropSession()
        let session = UnsafeMutablePointer<WebSocketSession>.allocate(capacity: 1)
        session.initialize(
            to: WebSocketSession(
                configuration: configuration, deflate: outcome.deflate, keys: pool.maskKeys,
                now: Loop.now()))
        // For bytes that arrived together with the handshake's answer.
        session.pointee.allow(inflating: Loop.bytesPerTurn)
        self.session = session
        phase = .open(transport)
        guard becomeOpen() else { return }
        counters.connections.grow(by: 1)
        loop.counters.connections.grow(by: 1)
        reconnection?.opened(now: Loop.now())
        log("\(currentURL.displayName) is open")
        if isPaused { session.pointee.setPaused(true, now: Loop.now()) }
        if mayCall, let open = handlers.open {
            var opened = transport.opened(isSecure: configuration.url.isSecure)
            opened.response = HTTPResponse(head, body: [])
            opened.httpVersion = 10 + head.minorVersion
            opened.subprotocol = outcome.subprotocol
            opened.extensions = outcome.extensions
            open(opened)
        }
        sendKept()
    }

    /// The time to open is over.
    func failOpening() {
        // One with a limit for the answer is a leg of Spreadbot's, where options have other names.
        let isLeg = configuration.answerTimeout > .zero
        let option = isLeg ? "connect_timeout" : "open_timeout"
        let limit = "\(configuration.openTimeout.readable) (\(option))"
        switch phase {
        case .connecting(let connect): fail(connect.late(limit))
        case .handshaking(_, let handshaking):
            let time = handshaking.answerTimeout.map { "\($0.readable) (answer_timeout)" } ?? limit
            fail(
                RealtimeError(
                    .timeout,
                    "\(currentURL.displayName) accepted the connection, but did not answer the"
                        + " opening handshake within \(time)"))
        case .idle, .refused, .waiting, .open, .over: break
        }
    }
}

extension WebSocketConnection: CurlConnectOwner {
    func connected(_ socket: Int32, _ curl: CurlConnect?) {
        let transport = Transport(socket, curl)
        reachedServer = true
        var nonce = [UInt8](repeating: 0, count: 16)
        nonce.withUnsafeMutableBytes { shim_random_bytes($0.baseAddress, $0.count) }
        let handshake = ClientHandshake(
            url: currentURL, nonce: nonce, subprotocols: configuration.subprotocols,
            fields: attempt?.value.fields ?? [], deflate: configuration.compression.offer)
        let handshaking = Handshaking(handshake, headerLimit: configuration.limits.headerBytes)
        let due = Loop.now() + configuration.answerTimeout
        if configuration.answerTimeout > .zero, openDeadline.map({ due < $0 }) ?? true {
            openDeadline = due
            handshaking.answerTimeout = configuration.answerTimeout
        }
        Log.write(.debug, "\(currentURL.displayName) is connected; the handshake begins")
        phase = .handshaking(transport, handshaking)
        sendHandshake(transport, handshaking)
        settle()
    }

    func connectFailed(_ error: RealtimeError) { fail(error) }
}
