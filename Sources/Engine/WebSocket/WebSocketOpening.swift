import CShims
import Session
import Synchronization
import Wire

// Opens a connection, on the loop's thread: connecting, the handshake, redirects, and
// the response of a server that refuses.

extension WebSocketConnection {
    /// Begins the first attempt, or one after a loss.
    func begin() {
        guard life.stage == .idle, isWanted else { return }
        takeConfiguration()
        sendLimits.set(configuration)
        reachedServer = false
        if life.begin(configuration, isReachable: isReachable(), now: Loop.now()) {
            connect()
        } else {
            waitForNetwork()
        }
        updateTimer()
    }

    private func connect() {
        do throws(RealtimeError) {
            let connect = StreamConnect(
                to: currentURL, by: configuration.network, within: life.timeLeft(Loop.now()),
                multi: try CurlMulti.of(loop), owner: self)
            try connect.start()
            link = .connecting(connect)
            log("connecting to \(currentURL.displayName)")
        } catch {
            // Reported in the next turn, because handlers must not run inside `start`.
            life.failsLater(error)
            scheduleTurn()
        }
    }

    func sendHandshake() {
        guard case .connected(let transport) = link else { return }
        life.writeRequest { bytes in
            guard !watch.isWriteBlocked else { return nil }
            switch transport.write(bytes) {
            case .bytes(let count): return count
            case .wouldBlock:
                watch.isWriteBlocked = true
                return nil
            // The reader finds the end, and what the server sent before it.
            case .failed: return nil
            }
        }
    }

    /// Handles bytes that were read before the connection is open.
    /// - Returns: how many bytes were used; the rest are frames.
    func takeHandshake(_ input: UnsafeRawBufferPointer) -> Int {
        switch life.received(input, configuration, now: Loop.now()) {
        case .incomplete: break
        case .open(let outcome, let head, let used):
            opened(outcome, head)
            return used
        case .redirected(let status):
            Log.write(.debug, "redirected by \(status) to \(currentURL.displayName)")
            dropTransport()
            connect()
        case .failed(let error): fail(error)
        }
        return input.count
    }

    private func opened(_ outcome: ClientHandshake.Outcome, _ head: ResponseHead) {
        var configuration = configuration
        configuration.url = currentURL
        configuration.deliversPieces = handlers.delivery.isInPieces
        dropSession()
        let session = UnsafeMutablePointer<WebSocketSession>.allocate(capacity: 1)
        session.initialize(
            to: WebSocketSession(
                configuration: configuration, deflate: outcome.deflate, keys: pool.maskKeys,
                now: Loop.now()))
        // For frames that arrived together with the response to the handshake.
        session.pointee.allow(inflating: Loop.bytesPerTurn)
        self.session = session
        guard becomeOpen() else { return }
        counters.connections.grow(by: 1)
        loop.counters.connections.grow(by: 1)
        log("\(currentURL.displayName) is open")
        if isPaused { session.pointee.setPaused(true, now: Loop.now()) }
        if mayCall, let open = handlers.open, let transport = openTransport {
            var opened = transport.opened(isSecure: configuration.url.isSecure)
            opened.response = HTTPResponse(head, body: [])
            opened.httpVersion = 10 + head.minorVersion
            opened.subprotocol = outcome.subprotocol
            opened.extensions = outcome.extensions
            open(opened)
        }
        settleOpenings(nil)
        sendKept()
    }
}

extension WebSocketConnection: CurlConnectOwner {
    func connected(_ socket: Int32, _ curl: CurlConnect?) {
        reachedServer = true
        link = .connected(Transport(socket, curl))
        var nonce = [UInt8](repeating: 0, count: 16)
        nonce.withUnsafeMutableBytes { shim_random_bytes($0.baseAddress, $0.count) }
        Log.write(.debug, "\(currentURL.displayName) is connected; the handshake begins")
        life.connected(configuration, nonce: nonce, now: Loop.now())
        sendHandshake()
        settle()
    }

    func connectFailed(_ error: RealtimeError) { fail(error) }
}
