import Session
import Wire

/// A Pusher server in one of the dialects. It writes and reads its messages itself.
final class PusherServer {
    private let world: World
    private let plan: PusherPlan
    private var random: Random
    private var faults: Random
    /// Of a hundred: subscriptions that are not answered, and that Reverb cannot read.
    private let mute: Int
    private let vague: Int
    /// Pings are not answered.
    private let isDeaf: Bool
    /// The connection of the client, if the server knows one.
    private(set) var link: PusherLink?
    /// How a message reaches the client.
    var deliver: (String, PusherLink) -> Void = { _, _ in }
    /// How the end of a connection reaches the client.
    var deliverEnd: (UInt16?, PusherLink) -> Void = { _, _ in }
    var isPeaceful = false

    /// The members other than the client, with the number of their connections.
    private var members: [String: [String: Int]] = [:]
    /// The key of each encrypted channel, an index.
    private var keys: [String: Int] = [:]
    private var lastSerial = 0
    /// Client events that arrived, by channel.
    private(set) var triggered: [String: [Int]] = [:]

    init(_ world: World, _ plan: PusherPlan) {
        self.world = world
        self.plan = plan
        random = world.random.split()
        faults = world.random.split()
        let rates = (faults.pick([0, 0, 20]), faults.pick([0, 20]))
        (mute, vague) = plan.isGentle ? (0, 0) : rates
        // A copy: the other draws stay the same.
        var own = faults
        isDeaf = own.chance(10) && !plan.isGentle
    }

    var dialect: PusherDialect { plan.dialect }

    func key(_ channel: String) -> SharedSecret? { PusherKeys.keys[keys[channel] ?? 0] }

    func rotate(_ channel: String) { keys[channel] = random.below(PusherKeys.keys.count) }

    // MARK: Connections

    /// The client's socket has opened.
    func greet(_ link: PusherLink) {
        self.link?.end()
        self.link = link
        if !isPeaceful, random.chance(plan.silent) { return }
        if !isPeaceful, random.chance(plan.refusing) { return refuse(link) }
        link.isGreeted = true
        let timeout = dialect.activityTimeout.map { #","activity_timeout":\#($0)"# } ?? ""
        let data = #"{"socket_id":"\#(link.socketID)"\#(timeout)}"#
        send(link, #"{"event":"pusher:connection_established","data":\#(wrapped(data))}"#)
        if dialect.pings { keepAsking(link) }
        if !isPeaceful, random.chance(plan.short) {
            world.after(random.milliseconds(0...plan.longestLife)) { [self] in
                if !link.isEnded { end(random.chance(30) ? .cut : .close(close, error: nil)) }
            }
        }
    }

    private var close: UInt16? { random.pick([4200, 4201, 4100, 1000, nil]) }

    private func refuse(_ link: PusherLink) {
        let code = random.pick([4001, 4009, 4100, 4200])
        if dialect == .reverb || dialect == .soketi { error(link, code, nil) }
        // Some leave the socket open.
        if dialect != .reverb { close(link, UInt16(code)) }
    }

    private func keepAsking(_ link: PusherLink) {
        world.after(.seconds(60)) { [self] in
            guard !link.isEnded else { return }
            send(link, #"{"event":"pusher:ping","data":"{}"}"#)
            link.pongDue = world.after(.seconds(30)) { [self] in
                guard !link.isEnded else { return }
                world.require(!plan.isGentle || link.isStalled, "a ping was not answered")
                close(link, 4201)
            }
            keepAsking(link)
        }
    }

    private func close(_ link: PusherLink, _ code: UInt16?) {
        link.down { [self] in deliverEnd(code, link) }
        ended(link)
    }

    /// The client has closed the connection, or the network has.
    func ended(_ link: PusherLink) {
        link.end()
        if self.link === link { self.link = nil }
    }

    func end(_ how: PusherPlan.End) {
        guard let link else { return }
        world.count("ended by the server")
        switch how {
        case .close(let code, let error):
            if let error { self.error(link, error, nil) }
            close(link, code)
        case .cut:
            link.isStalled = true
            world.after(random.milliseconds(0...500)) { [self] in
                if !link.isDropped { deliverEnd(nil, link) }
            }
            ended(link)
        case .stall:
            world.count("stalled")
            link.isStalled = true
            world.after(.seconds(400)) { [self] in ended(link) }
        }
    }

    // MARK: What it sends

    func send(_ link: PusherLink, _ text: String) {
        link.down { [self] in deliver(text, link) }
    }

    /// JSON as the string of an envelope, or as a value, as servers differ.
    private func wrapped(_ json: String) -> String {
        if dialect == .soketi { return json }
        return quoted(json)
    }

    private func quoted(_ text: String) -> String {
        var result = "\""
        for character in text {
            if character == "\"" || character == "\\" { result += "\\" }
            result.append(character)
        }
        return result + "\""
    }

    private func message(_ event: String, _ channel: String, _ data: String) -> String {
        #"{"event":"\#(event)","channel":"\#(channel)","data":\#(data)}"#
    }

    /// Publishes an event, which is named by its number.
    func publish(on channel: String) {
        lastSerial += 1
        guard let link, link.subscribed.contains(channel) else { return }
        let event = "e\(lastSerial)"
        guard channel.hasPrefix("private-encrypted-") else {
            let data = random.pick([
                wrapped(#"{"price":"7.10"}"#), "null", "12", quoted("hello"), #"{"a":[1,2]}"#,
            ])
            return send(link, message(event, channel, data))
        }
        let sealed = random.pick(PusherKeys.sealed[keys[channel] ?? 0])
        let isDamaged = !plan.isGentle && random.chance(3)
        let box =
            isDamaged
            ? "{}" : #"{"nonce":"\#(sealed.nonce)","ciphertext":"\#(sealed.ciphertext)"}"#
        send(link, message(event, channel, wrapped(box)))
    }

    func sendGarbage() {
        guard let link, link.isGreeted else { return }
        lastSerial += 1
        send(
            link,
            random.pick([
                "[]", #"{"event":5}"#, "nonsense", #"{"data":"x"}"#,
                message("e\(lastSerial)", "unknown", "1"),
                message("pusher_internal:news", "chat", "1"),
                message("pusher_internal:subscription_count", "chat", "{}"),
                message("pusher_internal:member_added", "presence-c", "{}"),
                message("pusher_internal:member_removed", "presence-c", #"{"user_id":"nobody"}"#),
                #"{"event":"pusher:error","data":{"code":4301,"message":"slow"}}"#,
            ]))
    }

    private func error(_ link: PusherLink, _ code: Int?, _ channel: String?) {
        let code = code.map { "\($0)" } ?? "null"
        let data = #"{"code":\#(code),"message":"no"}"#
        let channel = channel.map { #","channel":"\#($0)""# } ?? ""
        let text = dialect == .reverb ? quoted(data) : data
        send(link, #"{"event":"pusher:error"\#(channel),"data":\#(text)}"#)
    }

    // MARK: Presence

    func memberComes(_ channel: String) {
        let id = "u-\(random.below(4))"
        let count = members[channel, default: [:]][id, default: 0] + 1
        members[channel, default: [:]][id] = count
        guard count == 1 || dialect == .fake, let link, link.subscribed.contains(channel) else {
            return
        }
        tell(link, channel, id, isAdded: true)
    }

    func memberGoes(_ channel: String) {
        let all = members[channel, default: [:]].keys.sorted()
        guard !all.isEmpty else { return }
        let id = random.pick(all)
        let count = members[channel, default: [:]][id, default: 1] - 1
        members[channel, default: [:]][id] = count == 0 ? nil : count
        guard count == 0 || dialect == .fake, let link, link.subscribed.contains(channel) else {
            return
        }
        tell(link, channel, id, isAdded: false)
    }

    private func tell(_ link: PusherLink, _ channel: String, _ id: String, isAdded: Bool) {
        var ids = link.reported[channel] ?? []
        ids.removeAll { $0 == id }
        if isAdded { ids.append(id) }
        link.reported[channel] = ids
        let event = isAdded ? "pusher_internal:member_added" : "pusher_internal:member_removed"
        send(link, message(event, channel, wrapped(#"{"user_id":"\#(id)"}"#)))
    }

    private func presence(_ link: PusherLink, _ channel: String, _ own: String) -> String {
        let ids = (members[channel, default: [:]].keys.sorted() + [own]).sorted()
        link.reported[channel] = ids
        let list = ids.map { "\"\($0)\"" }.joined(separator: ",")
        let hash = ids.map { "\"\($0)\":null" }.joined(separator: ",")
        let both = dialect == .fake ? "" : #","ids":[\#(list)]"#
        return #"{"presence":{"count":\#(ids.count)\#(both),"hash":{\#(hash)}}}"#
    }

    // MARK: What it receives

    func receive(_ bytes: [UInt8], _ link: PusherLink) {
        guard let json = try? JSONValue(parsing: bytes), let event = json["event"]?.stringValue
        else { return world.fail("the client sends what is not a message") }
        world.require(link.isGreeted, "the client sends \(event) before it is greeted")
        let data = json["data"] ?? .null
        switch event {
        case "pusher:ping":
            guard isPeaceful || !isDeaf else { return world.count("pings not answered") }
            send(link, #"{"event":"pusher:pong","data":"{}"}"#)
        case "pusher:pong": link.pongDue?.cancel()
        case "pusher:subscribe": subscribe(data, link)
        case "pusher:unsubscribe": unsubscribe(data["channel"]?.stringValue ?? "", link)
        case "pusher:signin": signIn(data, link)
        default: trigger(event, json["channel"]?.stringValue ?? "", link)
        }
    }

    private func subscribe(_ data: JSONValue, _ link: PusherLink) {
        let channel = data["channel"]?.stringValue ?? ""
        if link.subscribed.contains(channel), !link.unasked.contains(channel) {
            return subscribedTwice(channel, link)
        }
        if channel.hasPrefix("private-") || channel.hasPrefix("presence-") {
            let auth = data["auth"]?.stringValue ?? ""
            world.require(
                auth.hasSuffix(":\(link.socketID):\(channel)"),
                "an authorization of another socket or channel: \(auth)")
            let own = data["channel_data"]?.stringValue
            let isKnown = !channel.hasPrefix("presence-") || own != nil || link.user != nil
            world.require(isKnown, "a presence channel without a user")
            guard auth.hasPrefix("KEY:") else { return refuse(channel, link) }
        } else if channel.hasPrefix("#server-to-user-") {
            // A client that signs in as A, B and A again cannot tell the two answers for A apart.
            world.require(
                link.users.contains(String(channel.dropFirst(16))), "the channel of another user")
        }
        if !isPeaceful, faults.chance(mute) { return world.count("not answered") }
        if !isPeaceful, dialect == .reverb, faults.chance(vague) { return error(link, 4200, nil) }
        link.subscribed.insert(channel)
        confirm(channel, link, own: data["channel_data"] == nil ? link.user ?? "" : "me")
        if channel.hasPrefix("cache-") {
            if random.chance(50) {
                publish(on: channel)
            } else {
                send(link, message("pusher:cache_miss", channel, "null"))
            }
        }
        if random.chance(30), !channel.hasPrefix("presence-") {
            let count = wrapped(#"{"subscription_count":\#(random.below(9))}"#)
            send(link, message("pusher_internal:subscription_count", channel, count))
        }
    }

    private func confirm(_ channel: String, _ link: PusherLink, own: String) {
        var answer = random.pick(["", #","data":{}"#, #","data":"{}""#])
        if channel.hasPrefix("presence-") {
            answer = #","data":\#(wrapped(presence(link, channel, own)))"#
        }
        let event = "pusher_internal:subscription_succeeded"
        send(link, #"{"event":"\#(event)","channel":"\#(channel)"\#(answer)}"#)
    }

    /// Confirms a channel that the client has not subscribed yet.
    func confirmUnasked(_ channel: String) {
        guard let link, link.isGreeted, link.subscribed.insert(channel).inserted else { return }
        world.count("confirmed unasked")
        link.unasked.insert(channel)
        confirm(channel, link, own: "me")
    }

    /// Only an error that names no channel may lead to this, which the client may take for the
    /// answer to a subscription that then succeeds, or messages that take 30 s.
    private func subscribedTwice(_ channel: String, _ link: PusherLink) {
        switch dialect {
        case .pusher: error(link, nil, nil)
        case .reverb: send(link, message("pusher_internal:subscription_succeeded", channel, "{}"))
        case .soketi, .sockudo, .fake:
            world.require(link.repeated.contains(channel), "subscribes \(channel) twice")
            confirm(channel, link, own: "me")
        }
        world.require(!plan.isGentle, "subscribes \(channel) twice, without an error before")
    }

    private func refuse(_ channel: String, _ link: PusherLink) {
        world.count("refused by the server")
        switch dialect {
        case .pusher: error(link, nil, nil)
        case .reverb: error(link, 4009, nil)
        case .sockudo: error(link, 4009, channel)
        case .soketi:
            send(
                link,
                message(
                    "pusher:subscription_error", channel,
                    #"{"type":"AuthError","error":"no","status":401}"#))
        case .fake: send(link, message("pusher_internal:subscription_error", channel, "{}"))
        }
    }

    private func unsubscribe(_ channel: String, _ link: PusherLink) {
        guard link.subscribed.remove(channel) == nil else { return }
        if dialect == .pusher { error(link, nil, nil) }
    }

    private func signIn(_ data: JSONValue, _ link: PusherLink) {
        world.require(
            data["auth"] == .string("KEY:\(link.socketID):user"),
            "a sign-in of another socket")
        guard dialect.knowsUsers else {
            if dialect == .reverb { error(link, 4200, nil) }
            return
        }
        let id = data["user_data"]?.stringValue.flatMap { PusherSignedInUser.id(in: $0) }
        guard let id else { return world.fail("a sign-in of nobody") }
        let isLate = !isPeaceful && random.chance(plan.lateSignIns)
        // Some after the client has given up.
        let time = world.now + (isLate ? random.milliseconds(0...60_000) : .zero)
        link.userKnownAt = max(time, link.userKnownAt)
        guard link.userKnownAt > world.now else { return confirm(id, link) }
        world.at(link.userKnownAt) { [self] in
            guard !link.isEnded else { return }
            world.count("signed in late")
            confirm(id, link)
        }
    }

    private func confirm(_ id: String, _ link: PusherLink) {
        link.user = id
        link.users.insert(id)
        let user = quoted(#"{"id":"\#(id)"}"#)
        send(
            link,
            #"{"event":"pusher:signin_success","data":\#(wrapped(#"{"user_data":\#(user)}"#))}"#)
        let list = wrapped(#"{"events":[{"name":"online","user_ids":["u-1"]}]}"#)
        send(
            link,
            dialect == .sockudo
                ? #"{"event":"online","data":{"user_ids":["u-1"]}}"#
                : #"{"event":"pusher_internal:watchlist_events","data":\#(list)}"#)
    }

    private func trigger(_ event: String, _ channel: String, _ link: PusherLink) {
        guard let number = Int(event.dropFirst("client-".count)) else {
            return world.fail("the client sends \(event)")
        }
        let isConfirmed = link.subscribed.contains(channel) || link.unasked.contains(channel)
        world.require(isConfirmed, "\(event) before \(channel) is subscribed")
        triggered[channel, default: []].append(number)
    }
}
