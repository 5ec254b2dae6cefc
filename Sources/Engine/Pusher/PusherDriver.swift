import Session
import Wire

// The work of a Pusher connection on its loop's thread: its socket and its session's actions.
// Events are in PusherDelivery.swift, requests in PusherRequests.swift.
extension PusherConnection {
    var isReachable: Bool {
        guard let url = session.url ?? (try? configuration.url(isSecure: configuration.usesTLS))
        else { return true }
        return reachability?.isReachable(url, by: configuration.network) ?? true
    }

    /// To be called before the session may send a ping.
    func noteSentBytes() { session.sentBytes = socket?.connection.sentBytes ?? SentBytes() }

    func subscribeNow(_ handle: PusherChannelHandle, _ answer: PusherAuthorizationAnswer?) {
        // Another thread may have unsubscribed meanwhile.
        guard handle.isRegistered else { return }
        session.subscribe(
            handle.number, handle.channel, for: handle, answer: answer, now: Loop.now())
    }

    func unsubscribeNow(_ handle: PusherChannelHandle) {
        session.unsubscribe(handle.number, now: Loop.now())
    }

    func channel(_ number: PusherSession.ChannelID) -> PusherChannelHandle? {
        session.registration(of: number).map { handle($0) }
    }

    /// The session keeps the handles of its channels; all were passed to it by `subscribeNow`.
    @inline(__always)
    func handle(_ registration: any PusherRegistration) -> PusherChannelHandle {
        unsafeDowncast(registration, to: PusherChannelHandle.self)
    }

    func perform(_ command: PusherSession.Command) {
        switch command {
        case .connect(let attempt): open(attempt)
        case .send(let number, let message): send(message, on: number)
        case .ping(let number):
            debug("a ping frame is sent")
            current(number)?.ping()
        case .close(let number): current(number)?.close()
        case .drop(let number): if current(number) != nil { dropSocket() }
        case .authorize(let request): authorize(request)
        case .cancelAuthorization(let number): cancelAuthorization(number)
        }
    }

    private func current(_ number: UInt64) -> WebSocketLeg? {
        number == socketNumber ? socket : nil
    }

    // MARK: The socket

    private func open(_ attempt: PusherSession.Attempt) {
        dropSocket()
        Log.write(.info, "\(attempt.url.displayName): connecting to the Pusher server")
        debug("connecting to \(attempt.url.displayName)")
        // A logging function may have closed the connection.
        guard !isClosed else { return }
        do throws(RealtimeError) {
            let configuration = configuration
            let socket = try WebSocketLeg(
                attempt.url, configuration.fields, configuration.network, configuration.redirects,
                on: loop
            ) { options throws(RealtimeError) in
                if let subprotocol = attempt.subprotocol { try options.addSubprotocol(subprotocol) }
                options.compression.enabled = configuration.compression
                options.limits.messageBytes = configuration.maxMessageBytes
                options.sendLimit = PusherConfiguration.unsentLimit
                options.closeTimeout = .zero
            }
            (self.socket, socketNumber) = (socket, attempt.number)
            publish { $0.webSocket = socket.connection }
            try socket.start(reachability) { setHandlers(&$0, socket) }
        } catch {
            dropSocket()
            ended(attempt.number, PusherSocketEnd(error: error))
        }
    }

    func dropSocket() {
        publish { $0.webSocket = nil }
        socket?.connection.abandon()
        socket = nil
    }

    private func setHandlers(_ handlers: inout WebSocketHandlers, _ socket: WebSocketLeg) {
        handlers.open = { [self] opened in
            guard socket === self.socket else { return }
            publish { $0.opened = opened }
            session.opened(socketNumber, now: Loop.now())
            act()
        }
        handlers.activity = { [self] in
            guard socket === self.socket else { return }
            // A frame that is not a message is not followed by `act`, which arms the timer.
            if session.activity(socketNumber, now: Loop.now()) { schedule() }
        }
        handlers.delivery = socket.delivery { [self] kind, bytes in receive(kind, bytes, socket) }
        handlers.close = { [self] end in
            guard socket === self.socket else { return }
            // After a failure, only a code of Pusher is surely that of the server.
            let code = end.codeOfPeer.map { $0.rawValue }
            ended(
                socketNumber,
                PusherSocketEnd(
                    closeCode: code.flatMap { end.error == nil || $0 >= 4000 ? $0 : nil },
                    reason: end.reason, error: end.error, wasClean: end.isClean))
            act()
        }
    }

    func ended(_ number: UInt64, _ end: PusherSocketEnd) {
        if current(number) != nil { dropSocket() }
        let why = end.error.map { session.secrets.redacted($0.message) }
        debug("the socket has ended: \(why ?? end.closeCode.map { "\($0)" } ?? "")")
        // The loop reports a lost network only at the end of its turn.
        if !isReachable { session.networkChanged(isOnline: false, now: Loop.now(), random: 0) }
        session.ended(number, end, now: Loop.now())
    }

    private func send(_ message: [UInt8], on number: UInt64) {
        guard let socket = current(number) else { return }
        debugMessage("sent", message)
        guard socket.send(.text, message)?.code == .bufferFull else { return }
        let server = session.url?.displayName ?? "the server"
        let limit = PusherConfiguration.unsentLimit >> 20
        ended(
            number,
            PusherSocketEnd(
                error: RealtimeError(
                    .bufferFull, "\(server) does not read: more than \(limit) MiB wait for it")))
    }
}
