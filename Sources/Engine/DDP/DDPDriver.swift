import CShims
import Documents
import Session
import Wire

// The work of a Meteor client on its loop's thread: its sockets, and its session's actions.
extension DDPConnection: DDPSocketOwner {
    var isReachable: Bool {
        let (address, network) = (configuration.address.webSocket, configuration.network)
        return reachability?.isReachable(address, by: network) ?? true
    }

    func noteSentBytes() {
        let sent = socket?.sentBytes ?? SentBytes()
        shared.locked { shared.session.sentBytes = sent }
    }

    func perform(_ command: DDPSession.Command) {
        switch command {
        case .connect(let number): open(number)
        case .send(let number, let text): if number == socketNumber { socket?.send(text) }
        case .close(let number): if number == socketNumber { socket?.close() }
        case .drop(let number): if number == socketNumber { dropSocket() }
        case .keep: keepDocuments()
        }
    }

    // MARK: The socket

    private func open(_ number: UInt64) {
        dropSocket()
        socketNumber = number
        isConfirmed = false
        let transport = choice.begin(now: Loop.now())
        let address = configuration.address
        let name = (transport == .webSocket ? address.webSocket : address.sockJS).displayName
        Log.write(.info, "\(name): connecting to the Meteor server")
        // A logging function may have closed the client.
        guard !isClosed else { return }
        var secrets = SentSecrets(configuration.fields, address.webSocket)
        secrets.add(address.sockJS)
        secrets.add(configuration.network)
        shared.locked { shared.session.secrets.add(secrets) }
        do throws(RealtimeError) {
            let socket: any DDPSocket =
                switch transport {
                case .webSocket: try DDPWebSocket(configuration, on: loop, owner: self)
                case .sockJS: SockJSSocket(configuration, on: loop, owner: self)
                }
            self.socket = socket
            try socket.start()
        } catch {
            socket = nil
            lost(number, DDPSocketEnd(error: error))
        }
    }

    func dropSocket(saying last: [UInt8]? = nil) {
        socket?.drop(saying: last)
        socket = nil
    }

    @inline(never)
    func opened(_ socket: any DDPSocket, _ opened: Opened) {
        guard socket === self.socket, !isClosed else { return }
        let login = keptLogin(configuration, handlers)
        let number = socketNumber
        shared.locked {
            shared.opened = opened
            shared.session.wallClock = Loop.wallClockMilliseconds()
            if case .known(let token) = login {
                shared.session.useToken(token, now: Loop.now())
            }
            shared.session.beginOpening(number, now: Loop.now())
        }
        callOpenHandler()
        guard !isClosed else { return }
        shared.locked { shared.session.opened(number, now: Loop.now()) }
        act()
    }

    /// Lets the application make the calls that go before all others.
    private func callOpenHandler() {
        guard handlers.open != nil else { return }
        // What the loss of the last connection caused is reported before, however long it takes.
        isUrgent = true
        act()
        isUrgent = false
        // A handler may have closed the client, ended the connection, or removed this one.
        guard !isClosed, let handler = handlers.open else { return }
        let isOpening = shared.locked {
            shared.openingThread = shared.session.isOpening ? UInt(shim_thread_self()) : 0
            return shared.session.isOpening
        }
        guard isOpening else { return }
        handler()
        shared.locked { shared.openingThread = 0 }
    }

    func heard(by socket: any DDPSocket) {
        guard socket === self.socket, !isClosed else { return }
        shared.locked { shared.session.heard(on: socketNumber) }
    }

    @inline(never)
    func received(_ text: UnsafeRawBufferPointer, by socket: any DDPSocket) {
        guard socket === self.socket, !isClosed else { return }
        let frame = reader.read(text)
        shared.locked {
            // Only logins need it.
            if frame.isResult { shared.session.wallClock = Loop.wallClockMilliseconds() }
            shared.session.received(
                frame, bytes: text.count, on: socketNumber, now: Loop.now())
        }
        act()
        // The socket may be a new one.
        if isBusy { pauseChanged() }
    }

    @inline(never)
    func ended(_ end: DDPSocketEnd, of socket: any DDPSocket) {
        guard socket === self.socket else { return }
        self.socket = nil
        guard !isClosed else { return }
        lost(socketNumber, end)
        act()
    }

    private func lost(_ number: UInt64, _ end: DDPSocketEnd) {
        // The loop reports a lost network only at the end of its turn.
        let isReachable = isReachable
        shared.locked {
            if !isReachable { shared.session.networkChanged(isReachable: false, now: Loop.now()) }
            shared.session.ended(number, end, now: Loop.now())
        }
    }

    // MARK: Reports

    func report(_ report: DDPSession.Report) {
        switch report {
        case .status(let change): self.report(change)
        // Delivered in pieces.
        case .changed: break
        case .streamed(let collection, let event):
            shared.locked { DDPSendable(shared.streams[ByteText(collection)]) }.value?(event)
        case .result(let id, let result):
            shared.locked { shared.calls[id] }?.result?(result)
        case .completed(let id, let result):
            shared.locked { shared.calls.removeValue(forKey: id) }?.completed?(result)
        case .ready(let handle):
            shared.locked { shared.subscriptions[handle] }?.ready?()
        case .stopped(let handle, let error):
            shared.locked { shared.subscriptions.removeValue(forKey: handle) }?.stopped?(error)
        case .loaded(let loader, let error):
            let handlers = shared.locked {
                // If a subscription was added since, they wait for it, too.
                let isReady = shared.session.whenReady(loader)
                return DDPSendable(isReady ? shared.loaders.removeValue(forKey: loader) : nil)
            }
            // A handler may free the client.
            for handler in handlers.value ?? [] where !isClosed { handler(error) }
        case .account(let event):
            keep(event)
            handlers.account?(event)
        case .current: handlers.current?()
        case .refused(let reason, let offending):
            Log.write(.warning, "the Meteor server did not understand a message: \(reason)")
            handlers.refused?(reason, offending)
        case .log(let line): handlers.debug?("[DDP] \(line.withoutControls)")
        }
    }

    func keptLogin(_ options: DDPClientConfiguration, _ handlers: DDPHandlers) -> DDPKeptLogin {
        if let load = handlers.loadToken { return .known(load()) }
        return DDPTokenFile(options)?.load() ?? .unknown
    }

    /// Updates the file for the token, if there is one.
    private func keep(_ event: DDPAccountEvent) {
        let token: DDPLoginToken?
        switch event {
        case .store(let new): token = new
        case .forget: token = nil
        case .user, .loggingIn, .resumeFailed: return
        }
        let fault = DDPTokenFile(configuration)?.save(token)
        shared.locked {
            shared.tokenFault = fault
            if fault == nil { shared.session.tokenKept(token) }
        }
    }

    private func report(_ change: DDPStatusChange) {
        if change.status == .connected {
            isConfirmed = true
            choice.connected()
            if isHeld { pauseChanged() }
        } else if change.status != .connecting, let error = change.error, !isConfirmed {
            choice.failed(error, now: Loop.now())
        }
        shared.locked { shared.report(change) }
        let name = configuration.address.webSocket.displayName
        let retry = change.retryIn.map { ", next attempt \($0.fromNow)" } ?? ""
        let why = change.error.map { ": \($0.message)" } ?? ""
        Log.write(
            change.error == nil ? .info : .warning,
            "\(name): the Meteor client is \(change.status.name)\(retry)\(why)")
        handlers.status?(change)
    }

    // MARK: The end

    /// Passes on what the application has called, and the socket has not been given yet.
    func sendLast() {
        let unanswered = shared.locked { shared.calls.count }
        if unanswered > 0 {
            let name = configuration.address.webSocket.displayName
            Log.write(
                .info,
                "\(name): the Meteor client is closed, and \(unanswered) calls have no result; "
                    + "they may run at the server")
        }
        while let action = shared.nextAction() {
            switch action {
            case .command(.keep), .command(.connect): break
            case .command(let command): perform(command)
            case .report(let report): keepLast(report)
            }
        }
    }

    /// Of a report that nobody gets any more, the token is kept.
    func keepLast(_ report: DDPSession.Report) {
        if case .account(let event) = report { keep(event) }
    }
}

extension DDPStatus {
    fileprivate var name: String {
        switch self {
        case .offline: "offline"
        case .connecting: "connecting"
        case .connected: "connected"
        case .waiting: "waiting"
        case .failed: "failed"
        }
    }
}
