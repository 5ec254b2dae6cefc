import Session
import Wire

/// A connection to a Meteor server by SockJS: does the I/O for `SockJSSession`. Its requests are
/// never repeated, and follow no redirects.
final class SockJSSocket: DDPSocket, LoopSource, LoopResident, TimerTarget {
    private let configuration: DDPClientConfiguration
    private let loop: Loop
    private let handles: CurlHandles
    private let id: SockJSSessionID
    private var owner: (any DDPSocketOwner)?
    @exclusivity(unchecked) private var session: SockJSSession
    private var polling: SockJSExchange?
    private var sending: SockJSExchange?
    private let timer = LoopTimer()
    private var isScheduled = false
    /// Messages that wait for the next turn.
    private var undelivered: ArraySlice<[UInt8]> = []
    private var budget = TurnBudget()
    /// The response to the last poll, and its connection.
    private var opened = Opened()

    init(
        _ configuration: DDPClientConfiguration, on loop: Loop, owner: any DDPSocketOwner
    ) {
        self.configuration = configuration
        self.loop = loop
        self.owner = owner
        handles = CurlHandles(configuration.network, on: loop)
        id = SockJSSessionID(random: randomFraction())
        session = SockJSSession(
            name: configuration.address.sockJS.displayName, unsentLimit: configuration.unsentLimit)
    }

    // MARK: DDPSocket

    func start() throws(RealtimeError) {
        loop.addResident(self)
        session.start(now: Loop.now())
        schedule()
    }

    func send(_ text: [UInt8]) {
        session.send(text, now: Loop.now())
        schedule()
    }

    func setPaused(_ isPaused: Bool) {
        session.setPaused(isPaused, now: Loop.now())
        schedule()
    }

    var sentBytes: SentBytes {
        noteArrived()
        return session.sentBytes
    }

    private func noteArrived() {
        if let sending { session.arrived(sending.bytesArrived, now: Loop.now()) }
    }

    func close() {
        session.close(now: Loop.now())
        schedule()
    }

    /// Says nothing: a request takes a while.
    func drop(saying _: [UInt8]?) {
        guard owner != nil else { return }
        owner = nil
        dropExchanges()
        loop.disarm(timer)
        handles.removeAll()
        loop.removeResident(self)
    }

    // MARK: Driving

    private func schedule() {
        guard !isScheduled, owner != nil else { return }
        isScheduled = true
        loop.schedule(self)
    }

    func turn() {
        isScheduled = false
        deliver()
        while undelivered.isEmpty, let owner, let action = session.nextAction() {
            switch action {
            case .poll: polling = begin(.poll, nil)
            case .send(let body): sending = begin(.send, body)
            case .opened: owner.opened(self, opened)
            case .received(let messages):
                undelivered = messages[...]
                deliver()
            case .ended(let end):
                drop()
                owner.ended(end, of: self)
            }
        }
        updateTimer()
    }

    private func deliver() {
        while !undelivered.isEmpty {
            // The owner may drop the socket.
            guard let owner else { return undelivered.removeAll() }
            if owner.isBusy { return schedule() }
            let message = undelivered.removeFirst()
            message.withUnsafeBytes { owner.received($0, by: self) }
            if budget.isSpent(on: loop), !undelivered.isEmpty { return schedule() }
        }
    }

    private func updateTimer() {
        guard owner != nil else { return }
        if let time = session.wakeUp {
            loop.arm(timer, self, at: time)
        } else {
            loop.disarm(timer)
        }
    }

    func timeReached(_ now: Instant) {
        noteArrived()
        session.timeReached(now)
        turn()
    }

    /// Not called, because it has no descriptor.
    func ready(_ events: UInt32) {}

    func loopClosed() { drop() }

    // MARK: Requests

    private func begin(_ action: SockJSAction, _ body: [UInt8]?) -> SockJSExchange? {
        do throws(RealtimeError) {
            let url = try configuration.address.url(of: id, action)
            var request = HTTPRequest("POST", url, body: .bytes(body ?? []))
            if body != nil { request.set("Content-Type", SockJSBody.mediaType) }
            request.lay(over: owner?.fields(configuration, for: url) ?? [])
            var options = HTTPTransferOptions()
            options.connectTimeout = configuration.session.connectTimeout
            options.owner = .ddp
            options.decodes = configuration.compression
            options.offersHTTP2 = configuration.http2
            options.prefersSharing = options.offersHTTP2 && url.isSecure
            options.goesOutOnce = true
            return try SockJSExchange(
                action, request, options, by: handles,
                configuration.receiveLimit == 0 ? .max : configuration.receiveLimit, of: self)
        } catch {
            session.failed(error)
            schedule()
            return nil
        }
    }

    private func dropExchanges() {
        polling?.drop()
        sending?.drop()
        (polling, sending) = (nil, nil)
    }

    fileprivate func received(
        _ head: ResponseHead, _ opened: Opened, by exchange: SockJSExchange
    ) {
        if exchange === polling { self.opened = opened }
        if head.proxy == nil {
            owner?.takeCookies(head.values("Set-Cookie"), from: exchange.url)
        }
        heard(exchange)
    }

    fileprivate func heard(_ exchange: SockJSExchange) {
        guard exchange === polling else { return }
        session.heard(now: Loop.now())
        owner?.heard(by: self)
    }

    fileprivate func answered(
        _ exchange: SockJSExchange, _ head: ResponseHead, _ body: UnsafeRawBufferPointer
    ) {
        guard isCurrent(exchange) else { return }
        session.answered(exchange.action, head, body, now: Loop.now())
        turn()
    }

    fileprivate func failed(_ exchange: SockJSExchange, _ error: RealtimeError) {
        guard isCurrent(exchange) else { return }
        session.failed(error)
        turn()
    }

    private func isCurrent(_ exchange: SockJSExchange) -> Bool {
        exchange === polling || exchange === sending
    }
}

/// One request of a SockJS session.
private final class SockJSExchange: HTTPTransferOwner {
    let action: SockJSAction
    let url: HTTPURL
    private let limit: Int
    private var socket: SockJSSocket?
    private var transfer: HTTPTransfer?
    private var head: ResponseHead?
    private var body = ByteBuffer()

    convenience init(
        _ action: SockJSAction, _ request: HTTPRequest, _ options: HTTPTransferOptions,
        by handles: CurlHandles, _ limit: Int, of socket: SockJSSocket
    ) throws(RealtimeError) {
        let handle = try handles.take(for: request.url)
        let multi = try handles.multi()
        self.init(action, request.url, limit, socket)
        do throws(RealtimeError) {
            transfer = try HTTPTransfer(
                request, options, by: handle, backTo: handles, multi: multi, owner: self)
        } catch {
            drop()
            throw error
        }
    }

    private init(
        _ action: SockJSAction, _ url: HTTPURL, _ limit: Int, _ socket: SockJSSocket
    ) {
        self.action = action
        self.url = url
        self.limit = limit
        self.socket = socket
    }

    /// How many bytes of the request's body have arrived.
    var bytesArrived: UInt64 { transfer?.bytesArrived ?? 0 }

    func drop() {
        transfer?.close()
        (transfer, socket) = (nil, nil)
    }

    func received(_ head: ResponseHead, by transfer: HTTPTransfer) {
        self.head = head
        socket?.received(head, transfer.opened(head), by: self)
    }

    func received(_ bytes: UnsafeRawBufferPointer, by transfer: HTTPTransfer) {
        socket?.heard(self)
        let isFrame = head?.status == 200 && action == .poll
        let room = (isFrame ? limit : HTTPRefusal.bodyLimit) - body.count
        guard body.hasMemory(for: bytes.count) else {
            return fail(Memory.exceeded("a SockJS frame", body.count + bytes.count))
        }
        guard bytes.count > room else { return body.append(bytes) }
        guard !isFrame else {
            return fail(
                RealtimeError(.tooLarge, "a SockJS frame has more than \(limit) bytes"))
        }
        // The beginning of a refusal is enough.
        body.append(UnsafeRawBufferPointer(rebasing: bytes[..<room]))
        end(nil)
    }

    func ended(_ failure: HTTPFailure?, by transfer: HTTPTransfer) { end(failure) }

    private func end(_ failure: HTTPFailure?) {
        if let failure { return fail(failure.error) }
        guard let socket, let head else { return }
        drop()
        socket.answered(self, head, body.readable)
    }

    private func fail(_ error: RealtimeError) {
        let socket = socket
        drop()
        socket?.failed(self, error)
    }

    func loopClosed() { socket?.loopClosed() }
}
