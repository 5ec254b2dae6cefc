import Session
import Wire

/// A connection to a Meteor server by WebSocket: each message is a text frame.
final class DDPWebSocket: DDPSocket {
    private let webSocket: WebSocketConnection
    private let loop: Loop
    private var owner: (any DDPSocketOwner)?
    /// The end if more waits to be sent than may.
    private let full: DDPSocketEnd
    /// Why it failed, until its end is reported.
    private var failure: RealtimeError?

    convenience init(
        _ configuration: DDPClientConfiguration, on loop: Loop, owner: any DDPSocketOwner
    ) throws(RealtimeError) {
        let webSocket = try WebSocketConnection(url: configuration.address.webSocket.text, on: loop)
        webSocket.isLeg = true
        try webSocket.configure { (options) throws(RealtimeError) in
            options.url = configuration.address.webSocket
            for field in owner.fields(configuration, for: configuration.address.webSocket) {
                try options.addHeader(name: field.name, value: field.value)
            }
            options.network = configuration.network
            options.redirects = configuration.redirects
            options.compression.enabled = configuration.compression
            options.limits.messageBytes = configuration.receiveLimit
            options.sendLimit = configuration.unsentLimit
            // The owner has times of its own for these.
            options.openTimeout = .zero
            options.pingInterval = .zero
            options.closeTimeout = SockJSSession.closeTimeout
        }
        self.init(
            webSocket, on: loop, owner,
            full: .full(
                limit: configuration.unsentLimit,
                server: configuration.address.webSocket.displayName))
    }

    private init(
        _ webSocket: WebSocketConnection, on loop: Loop, _ owner: any DDPSocketOwner,
        full: DDPSocketEnd
    ) {
        self.full = full
        self.webSocket = webSocket
        self.loop = loop
        self.owner = owner
    }

    func start() throws(RealtimeError) {
        try webSocket.setHandlers { handlers in
            handlers.open = { [self] opened in
                takeCookies(opened.response)
                owner?.opened(self, opened)
            }
            handlers.activity = { [self] in owner?.heard(by: self) }
            handlers.delivery = .each { [self] kind, bytes in
                // Other frames have no meaning.
                if kind == .text { owner?.received(bytes, by: self) }
            }
            handlers.failed = { [self] in
                failure = $0.error
                takeCookies($0.error.response)
            }
            handlers.close = { [self] in ended($0) }
        }
        // The handlers retain this, so drop even one that could not start.
        do throws(RealtimeError) {
            try webSocket.start()
        } catch {
            drop()
            throw error
        }
    }

    /// Takes over what the server itself sets, or refuses with.
    private func takeCookies(_ response: HTTPResponse?) {
        guard let response, response.proxy == nil else { return }
        let fields = response.headers.filter { $0.name.equalsIgnoringASCIICase("Set-Cookie") }
        owner?.takeCookies(fields.map { $0.value }, from: webSocket.currentURL)
    }

    private func ended(_ end: WebSocketEnd) {
        let hasCode = failure == nil && end.code != .abnormal && end.code != .noStatus
        report(
            DDPSocketEnd(
                closeCode: hasCode ? Int(end.code.rawValue) : nil, reason: end.reason,
                error: failure))
    }

    private func report(_ end: DDPSocketEnd) {
        let owner = owner
        drop()
        owner?.ended(end, of: self)
    }

    func send(_ text: [UInt8]) {
        do throws(RealtimeError) {
            try text.withUnsafeBufferPointer { (bytes) throws(RealtimeError) in
                try webSocket.send(.text, UnsafeRawBufferPointer(bytes))
            }
        } catch {
            // Otherwise it is closing, and its end is reported.
            guard error.code == .bufferFull else { return }
            loop.enqueue { [self] in report(full) }
        }
    }

    func setPaused(_ isPaused: Bool) {
        if isPaused { try? webSocket.pause() } else { try? webSocket.resume() }
    }

    var sentBytes: SentBytes { webSocket.sentBytes }

    func close() {
        try? webSocket.close(code: CloseCode.normal.rawValue, reason: "")
    }

    func drop(saying last: [UInt8]?) {
        owner = nil
        webSocket.abandon(saying: last)
    }
}
