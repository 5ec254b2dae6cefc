import Session
import Wire

/// A connection to a Meteor server by WebSocket: each message is a text frame.
final class DDPWebSocket: DDPSocket {
    private let leg: WebSocketLeg
    private let loop: Loop
    private var owner: (any DDPSocketOwner)?
    /// The end if more waits to be sent than may.
    private let full: DDPSocketEnd

    convenience init(
        _ configuration: DDPClientConfiguration, on loop: Loop, owner: any DDPSocketOwner
    ) throws(RealtimeError) {
        let url = configuration.address.webSocket
        let leg = try WebSocketLeg(
            url, owner.fields(configuration, for: url), configuration.network,
            configuration.redirects, on: loop
        ) { options throws(RealtimeError) in
            options.compression.enabled = configuration.compression
            options.limits.messageBytes = configuration.receiveLimit
            options.sendLimit = configuration.unsentLimit
            options.closeTimeout = SockJSSession.closeTimeout
        }
        let full = DDPSocketEnd.full(limit: configuration.unsentLimit, server: url.displayName)
        self.init(leg, on: loop, owner, full: full)
    }

    private init(
        _ leg: WebSocketLeg, on loop: Loop, _ owner: any DDPSocketOwner, full: DDPSocketEnd
    ) {
        self.full = full
        self.leg = leg
        self.loop = loop
        self.owner = owner
    }

    func start() throws(RealtimeError) {
        do throws(RealtimeError) {
            try leg.start(nil) { handlers in
                handlers.open = { [self] opened in
                    takeCookies(opened.response)
                    owner?.opened(self, opened)
                }
                handlers.activity = { [self] in owner?.heard(by: self) }
                // Even a short message may change many documents.
                handlers.delivery = leg.delivery(isCostly: true) { [self] kind, bytes in
                    // Other frames have no meaning.
                    if kind == .text { owner?.received(bytes, by: self) }
                }
                handlers.close = { [self] end in
                    takeCookies(end.error?.response)
                    let code = end.error == nil ? end.codeOfPeer : nil
                    report(
                        DDPSocketEnd(
                            closeCode: code.map { Int($0.rawValue) }, reason: end.reason,
                            error: end.error))
                }
            }
        } catch {
            drop()
            throw error
        }
    }

    /// Takes over what the server itself sets, or refuses with.
    private func takeCookies(_ response: HTTPResponse?) {
        guard let response, response.proxy == nil else { return }
        let fields = response.headers.filter { $0.name.equalsIgnoringASCIICase("Set-Cookie") }
        owner?.takeCookies(fields.map { $0.value }, from: leg.connection.currentURL)
    }

    private func report(_ end: DDPSocketEnd) {
        let owner = owner
        drop()
        owner?.ended(end, of: self)
    }

    func send(_ text: [UInt8]) {
        guard leg.send(.text, text)?.code == .bufferFull else { return }
        loop.enqueue { [self] in report(full) }
    }

    func setPaused(_ isPaused: Bool) { leg.setPaused(isPaused) }

    var sentBytes: SentBytes { leg.connection.sentBytes }

    func close() { leg.close() }

    func drop(saying last: [UInt8]?) {
        owner = nil
        leg.connection.abandon(saying: last)
    }
}
