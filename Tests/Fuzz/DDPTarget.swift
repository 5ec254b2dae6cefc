/// A Meteor client with calls, stubs, subscriptions and live queries, and a server that may send
/// anything at any time.
///
/// The first byte chooses the options, each other line is an event: what the server sends, as a
/// WebSocket message or as a frame of SockJS, or after a `!` what else happens, see `happen`.
func fuzzDDP(_ input: consuming Input) {
    var input = input
    let run = DDPFuzzRun(DDPFuzzOptions(input.byte()))
    let lines = input.rest.split(separator: UInt8(ascii: "\n")).prefix(300)
    for line in lines {
        let line = UnsafeRawBufferPointer(rebasing: line)
        if line[0] == UInt8(ascii: "!") {
            run.happen(String(decoding: line.dropFirst(), as: UTF8.self))
        } else {
            run.arrive(line)
        }
    }
    run.end()
}

/// The bits of the first byte. "0" is none of them, so that seeds can be read.
struct DDPFuzzOptions {
    let bits: UInt8

    init(_ byte: UInt8) { bits = byte ^ UInt8(ascii: "0") }

    var usesSockJS: Bool { bits & 1 != 0 }
    /// Documents wait for others.
    var buffers: Bool { bits & 2 != 0 }
    var hasLittleRoom: Bool { bits & 4 != 0 }
    /// Never connects again.
    var isBrief: Bool { bits & 8 != 0 }
    /// Logs in with the token of an earlier run.
    var hasToken: Bool { bits & 16 != 0 }
    /// Offers the versions in another order.
    var isOld: Bool { bits & 32 != 0 }
    /// Begins without calls, subscriptions and queries.
    var isIdle: Bool { bits & 64 != 0 }

    var configuration: DDPConfiguration {
        var configuration = DDPConfiguration()
        if !buffers { configuration.bufferInterval = .zero }
        configuration.mayReconnect = !isBrief
        if isOld { configuration.versions = ["pre1", "1"] }
        return configuration
    }

    var store: DocumentStore { DocumentStore(maximumBytes: hasLittleRoom ? 4096 : 1 << 30) }

    var token: DDPLoginToken? {
        hasToken ? DDPLoginToken(userID: "u", token: "kept", expires: nil) : nil
    }
}

/// Ids that the corpus can name: subscriptions are `s1`, `s2` and so on.
private struct DDPFuzzIDs: DDPRandomSource {
    private var count = 0

    mutating func subscriptionID() -> String { next("s") }
    mutating func seed() -> String { next("0123456789abcdef000") }

    private mutating func next(_ prefix: String) -> String {
        count += 1
        return "\(prefix)\(count)"
    }
}

/// The client with its driver.
final class DDPFuzzRun {
    private let options: DDPFuzzOptions
    private let ledger: DDPFuzzLedger
    private var session: DDPSession
    private var ids = DDPFuzzIDs()
    private var reader = DDPReader()
    private var now = Instant(nanoseconds: 0)
    private var handles: [DDPSession.SubscriptionHandle] = []
    private var loader: DDPSession.LoaderID
    /// How often the user, or the network, has done something.
    private var deeds = 0
    /// The session is inside one of its calls.
    private var isActing = false

    // The socket, and the one that is being opened.
    private var number: UInt64?
    private var isOpen = false
    private var sockJS: SockJSSession?

    init(_ options: DDPFuzzOptions) {
        self.options = options
        session = DDPSession(
            options.configuration, store: options.store, jitter: 7, token: options.token)
        session.wantsLog = true
        session.declare("c")
        session.declare("o", ids: .objectIDs)
        loader = session.makeLoader()
        ledger = DDPFuzzLedger()
        change { $0.connect(now: now) }
        guard !options.isIdle else { return }
        for command in ["q", "qn", "ql", "qo", "ba", "ba", "bd", "L", "c", "sab", "w", "i", "n"] {
            happen(command)
        }
    }

    // MARK: Events

    /// What the server sends: a WebSocket message, or the answer to a poll.
    func arrive(_ bytes: UnsafeRawBufferPointer) {
        guard number != nil else { return }
        if sockJS != nil {
            sockJS?.answered(.poll, ResponseHead(status: 200, reason: ""), bytes, now: now)
            turnSockJS()
        } else if isOpen, UTF8Validator.isValid(bytes) {
            receive(bytes)
        }
    }

    private func receive(_ bytes: UnsafeRawBufferPointer) {
        guard let number, isOpen else { return }
        let frame = reader.read(bytes)
        change { $0.received(frame, bytes: bytes.count, on: number, now: now) }
    }

    /// Whatever does not come from the server: the first letter says what, the rest with whom.
    func happen(_ text: String) {
        deeds += 1
        let rest = String(text.dropFirst())
        switch text.first {
        case "o": open()
        case "x": lose(RealtimeError(.connectionLost, "lost"))
        case "X": lose(nil)
        case "t": pass(.milliseconds(min(Int(rest) ?? 1, 600_000)))
        case "h": answerSend(Int(rest) ?? 204)
        case "C": change { $0.connect(now: now) }
        case "R": change { $0.reconnect(now: now) }
        case "D": change { $0.disconnect(now: now) }
        case "N": change { $0.hostReportsNetwork(isReachable: rest.isEmpty, now: now) }
        case "B": change { $0.enterBackground(now: now) }
        case "F": change { $0.enterForeground(now: now) }
        case "c", "w", "n", "l", "s", "i", "u", "r": call(text)
        case "g": made { $0.logIn(.login(token: "t"), now: now) }
        case "G": made { $0.logOut(now: now) }
        case "O": made { $0.logOutOthers(now: now) }
        case "U": change { $0.setUserID(rest.isEmpty ? nil : rest, now: now) }
        case "b": subscribe(rest)
        case "f", "k": letGo(text)
        case "L": load()
        case "q": observe(rest)
        case "Q": if let id = ledger.stopObserving() { session.store.stopObserving(id) }
        default: break
        }
    }

    /// The client is closed, and nothing may be left.
    func end() {
        checkGrowth()
        change { $0.close(now: now) }
        require(session.isSettled, "something waits after the end")
        require(session.wakeUp == nil, "something is due after the end")
        require(number == nil, "a socket is left")
        ledger.end()
    }

    /// Besides documents and messages that are held back, which have limits of their own, the
    /// session keeps nothing that the server has made up: only what belongs to the user's deeds.
    private func checkGrowth() {
        let kept = DDPFuzzRun.elements(Mirror(reflecting: session))
        let limit = 100 + 20 * deeds
        require(kept <= limit, "\(kept) things are kept for \(deeds) deeds of the user")
    }

    /// How many elements all collections in a value have, without those that may grow.
    private static func elements(_ value: Mirror) -> Int {
        value.children.reduce(0) { count, child in
            switch child.label {
            case "store", "held", "configuration": return count
            default: break
            }
            // A message counts once.
            if child.value is [UInt8] { return count }
            let mirror = Mirror(reflecting: child.value)
            switch mirror.displayStyle {
            case .collection?, .dictionary?, .set?:
                return count + mirror.children.count + elements(mirror)
            default: return count + elements(mirror)
            }
        }
    }

    // MARK: Time and sockets

    private func pass(_ time: Duration) {
        let end = now + time
        var count = 0
        while let due = earlier(session.wakeUp, sockJS?.wakeUp), due <= end {
            count += 1
            require(count < 5000, "the clock does not get on")
            now = max(now, due)
            if let due = sockJS?.wakeUp, due <= now {
                sockJS?.timeReached(now)
                turnSockJS()
            }
            if let due = session.wakeUp, due <= now { change { $0.timeReached(now) } }
        }
        now = end
    }

    private func earlier(_ first: Instant?, _ second: Instant?) -> Instant? {
        guard let first, let second else { return first ?? second }
        return min(first, second)
    }

    private func open() {
        if sockJS != nil { return [UInt8(ascii: "o")].withUnsafeBytes { arrive($0) } }
        opened()
    }

    private func opened() {
        guard let number, !isOpen else { return }
        isOpen = true
        ledger.opened()
        change {
            $0.beginOpening(number, now: now)
            $0.opened(number, now: now)
        }
    }

    private func lose(_ error: RealtimeError?) {
        if let error, sockJS != nil {
            sockJS?.failed(error)
            return turnSockJS()
        }
        ended(DDPSocketEnd(closeCode: error == nil ? 1000 : nil, error: error))
    }

    private func ended(_ end: DDPSocketEnd) {
        guard let ended = number else { return }
        dropSocket()
        change { $0.ended(ended, end, now: now) }
    }

    private func dropSocket() {
        (number, isOpen, sockJS) = (nil, false, nil)
    }

    private func answerSend(_ status: Int) {
        let head = ResponseHead(status: status, reason: "")
        sockJS?.answered(.send, head, UnsafeRawBufferPointer(start: nil, count: 0), now: now)
        turnSockJS()
    }

    private func turnSockJS() {
        while let action = sockJS?.nextAction() {
            switch action {
            case .poll: break
            case .send(let body):
                require((try? JSONValue(parsing: body))?.arrayValue?.isEmpty == false, "no body")
            case .opened: opened()
            case .received(let messages):
                for message in messages { message.withUnsafeBytes { receive($0) } }
            case .ended(let end): ended(end)
            }
        }
    }

    // MARK: Actions

    private func change(_ body: (inout DDPSession) -> Void) {
        session.wallClock = 1_700_000_000_000 + Int64(now.nanoseconds / 1_000_000)
        body(&session)
        act()
    }

    private func act() {
        guard !isActing else { return }
        isActing = true
        var count = 0
        while let action = session.nextAction() {
            count += 1
            require(count < 20_000, "too many actions")
            perform(action)
        }
        isActing = false
        require(!session.isInStub, "a stub has not ended")
        ledger.compare(session)
    }

    private func perform(_ action: DDPSession.Action) {
        switch action {
        case .command(let command): perform(command)
        case .report(let report): ledger.reported(report)
        }
    }

    private func perform(_ command: DDPSession.Command) {
        switch command {
        case .connect(let new):
            require(number == nil, "a second socket")
            number = new
            guard options.usesSockJS else { return }
            sockJS = SockJSSession(name: "server:80", unsentLimit: 1 << 20)
            sockJS?.start(now: now)
            turnSockJS()
        case .send(let receiver, let message):
            require(receiver == number && isOpen, "a message to a socket that is not open")
            ledger.sent(message)
            sockJS?.send(message, now: now)
            turnSockJS()
        case .close(let old), .drop(let old): if old == number { dropSocket() }
        case .keep: break
        }
    }

    // MARK: The user

    private func made(_ body: (inout DDPSession) -> DDPCall) {
        change { ledger.made(body(&$0).id) }
    }

    private func call(_ text: String) {
        var callOptions = DDPCallOptions()
        switch text.first {
        case "w": callOptions.isWait = true
        case "n": callOptions.noRetry = true
        case "l": callOptions.timeout = .seconds(3)
        default: callOptions.throwsStubErrors = text.last == "T"
        }
        let id = String(text.dropFirst())
        change { session in
            do throws(DDPError) {
                switch text.first {
                case "s": ledger.made(try callWithStub(&session, id, callOptions).id)
                case "i": ledger.made(try insert(&session, id).id)
                case "u":
                    ledger.made(
                        try session.update(
                            "c", id: .string(id), ["$inc": ["n": 1]], drawing: &ids, now: now
                        ).id)
                case "r":
                    ledger.made(
                        try session.remove("c", id: .string(id), drawing: &ids, now: now).id)
                default:
                    let request = DDPRequest("m", [.string(id)], callOptions)
                    ledger.made(try session.call(request, drawing: &ids, now: now).id)
                }
            } catch {
                require(error.kind == .stub, "a call has thrown \(error)")
            }
        }
    }

    private func insert(
        _ session: inout DDPSession, _ id: String
    ) throws(DDPError) -> DDPCall {
        var document: EJSONObject = ["n": 1]
        if !id.isEmpty { document["_id"] = .string(id) }
        return try session.insert("c", .object(document), drawing: &ids, now: now)
    }

    /// The stub does what the letters say.
    private func callWithStub(
        _ session: inout DDPSession, _ letters: String, _ options: DDPCallOptions
    ) throws(DDPError) -> DDPCall {
        session.beginStub(now: now)
        var outcome = DDPStubOutcome.success(.number(1))
        for letter in letters {
            do throws(DDPError) {
                try perform(letter, &session)
            } catch {
                outcome = .failure(error)
            }
        }
        return try session.call(DDPRequest("s", [], options), outcome, now: now)
    }

    private func perform(_ letter: Character, _ session: inout DDPSession) throws(DDPError) {
        let everything = EJSON.object(EJSONObject())
        switch letter {
        case "a"..."e":
            var document: EJSONObject = ["n": 2]
            document["_id"] = .string(String(letter))
            _ = try session.insertInStub("c", .object(document), drawing: &ids)
        case "o":
            _ = try session.insertInStub("o", ["n": 3], drawing: &ids)
        case "u":
            _ = try session.updateInStub(
                "c", everything, ["$set": ["n": 5]], isMulti: true)
        case "r": _ = try session.removeInStub("c", everything)
        case "m":
            session.enterStub("inner")
            _ = session.callInStub(DDPRequest("/c/insert", [everything]), drawing: &ids)
            session.leaveStub()
        case "t", "T": throw DDPError(.stub, "thrown")
        default: _ = session.draw(from: "x", drawing: &ids) { $0.fraction() }
        }
    }

    private func subscribe(_ name: String) {
        guard handles.count < 40 else { return }
        let params: [EJSON] = name == "d" ? [.date(1)] : []
        change {
            let handle = $0.subscribe(name, params, drawing: &ids, now: now)
            handles.append(handle)
            ledger.subscribed(handle)
        }
    }

    private func letGo(_ text: String) {
        guard !handles.isEmpty else { return }
        let handle = handles.remove(at: (Int(text.dropFirst()) ?? 0) % handles.count)
        ledger.letGo(handle)
        change { text.first == "k" ? $0.stop(handle, now: now) : $0.release(handle, now: now) }
    }

    /// Waits for all subscriptions with a new loader; the earlier one is closed.
    private func load() {
        change { session in
            session.closeLoader(loader, now: now)
            loader = session.makeLoader()
            for handle in handles {
                let handle = session.subscribe("\(handle % 3)", [], drawing: &ids, now: now)
                session.add(handle, to: loader)
            }
            ledger.awaits(session.whenReady(loader) ? nil : loader)
        }
    }

    private func observe(_ name: String) {
        guard ledger.queries.count < 12 else { return }
        var options = EJSONObject()
        var selector = EJSONObject()
        switch name {
        case "n": selector["n"] = ["$gt": 1]
        case "l":
            options["sort"] = ["n": 1]
            options["limit"] = .number(3)
        case "f": options["fields"] = ["n": 1]
        default: break
        }
        let collection = name == "o" ? "o" : "c"
        guard let query = try? Query(selector: .object(selector), options: .object(options)),
            let (id, found) = try? session.store.observe(query, in: collection)
        else { fatalError("not a query") }
        ledger.observes(id, query, collection, found)
    }
}
