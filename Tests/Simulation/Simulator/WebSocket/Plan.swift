import Session
import Wire

/// Everything that a seed defines: the options, the network, the scripts of the peer and the user,
/// drawn before the run starts.
struct Plan {
    enum Greeting: CaseIterable {
        case accept
        case refuse, wrongAccept, noUpgrade, oldHTTP, otherExtension, wrongWindow, otherProtocol
        case tooLong, tooManyInterim, garbage, silence, hangUp
    }

    enum Act {
        case message(opcode: UInt8, [UInt8], fragments: Int, PeerDeflater.Manner?)
        case ping([UInt8])
        /// A pong that answers no ping.
        case pong([UInt8])
        /// This many pings at once.
        case pingFlood(Int)
        case close(UInt16?, [UInt8])
        case misbehave(Misbehaviour)
        case garbage([UInt8])
        /// Only the beginning of a message.
        case half([UInt8])
        case hangUp, reset
    }

    enum Pongs: CaseIterable { case prompt, late, onlyLast, other, never }
    enum CloseAnswer: CaseIterable { case prompt, late, withoutHangingUp, never }
    enum Reading { case always, trickle(bytes: Int), stops }

    enum UserAct {
        case send(MessageKind, [UInt8])
        /// In pieces that end at these offsets, one every few milliseconds.
        case stream(MessageKind, [UInt8], ends: [Int])
        case ping([UInt8])
        case pause(Duration)
        case close(CloseCode?, String)
    }

    var random: Random
    /// A network and a peer without faults, so that everything must arrive.
    let isGentle: Bool
    /// Little traffic, so that it may travel byte by byte.
    let isTiny: Bool
    /// Messages above 64 KiB, which need the longest form of a frame's length, may come.
    let isLarge: Bool
    var configuration: WebSocketConfiguration
    var up: Link
    var down: Link
    var greeting = Greeting.accept
    var script: [(after: Duration, act: Act)] = []
    var pongs = Pongs.prompt
    var closeAnswer = CloseAnswer.prompt
    var reading = Reading.always
    var user: [(at: Duration, act: UserAct)] = []
    /// Of a hundred messages, how many the user answers with an echo, a pause or a close.
    var echoes = 0
    var pauses = 0
    var closes = 0
    /// How the client's loop reads.
    var receiveBytes: Int
    var bytesPerTurn: Int
    var batchSize: Int
    var usesBatches: Bool
    /// When the peer ends a connection that has not ended itself.
    var horizon = Duration.seconds(60)

    /// Corrupted bytes may change what is agreed and what is sent.
    var isCorrupted: Bool { Plan.corrupts(down) }
    var isCorruptedUpward: Bool { Plan.corrupts(up) }

    /// The limit of a message; there is none if messages come in pieces.
    var messageLimit: Int {
        configuration.deliversPieces ? 0 : configuration.limits.messageBytes
    }

    /// Whether the peer writes an invalid frame, or the beginning of one that swallows the next.
    var isGarbled: Bool {
        script.contains {
            switch $0.act {
            case .garbage, .half: true
            default: false
            }
        }
    }

    private static func corrupts(_ link: Link) -> Bool {
        link.faults.contains { if case .corrupt = $0.1 { true } else { false } }
    }

    init(_ source: inout Random) throws(RealtimeError) {
        random = source.split()
        isGentle = random.chance(35)
        isTiny = random.chance(70)
        isLarge = random.chance(15)
        configuration = try WebSocketConfiguration(url: "ws://peer.test/chat?room=1")
        up = Link(&random, tiny: isTiny)
        down = Link(&random, tiny: isTiny)
        receiveBytes = random.pick(isTiny ? [1, 2, 3, 14, 100, 4096] : [100, 5000, 65_536])
        bytesPerTurn = random.pick([receiveBytes, 4 * receiveBytes, 262_144])
        batchSize = random.pick([1, 2, 64])
        usesBatches = random.chance(60)
        try configure()
        if random.chance(20) {
            configuration.deliversPieces = true
            usesBatches = false
        }
        if isGentle { beGentle() } else { beHarsh() }
        writeScript()
        writeUser()
    }

    // MARK: Options

    /// The largest message of this run.
    private var messageBytes: Int {
        var largest = isTiny ? 400 : isLarge ? 70_000 : 8000
        // Up to this size no ratio makes a message a bomb.
        if configuration.limits.inflateRatio > 0 { largest = min(largest, 65_536) }
        let limit = configuration.limits.messageBytes
        return limit == 0 ? largest : min(limit, largest)
    }

    private mutating func configure() throws(RealtimeError) {
        configuration.limits.messageBytes = random.pick(
            isTiny ? [0, 130, 1000] : [0, 130, 1000, 66_000, 200_000])
        configuration.limits.headerBytes = random.pick([600, 4096])
        configuration.limits.inflateRatio = random.pick([0, 0, 20, 100])
        if configuration.limits.inflateRatio > 0 { configuration.limits.messageBytes = 0 }
        configuration.maxFrameBytes = random.pick([0, 0, 1000, isTiny ? 1 : 100])
        configuration.sendHighWater = random.pick([0, 500, 1 << 20])
        configuration.sendLimit = random.pick([0, 700, 20_000, 64 << 20])
        configuration.openTimeout = random.milliseconds(100...8000)
        configuration.closeTimeout = random.chance(8) ? .zero : random.milliseconds(20...4000)
        configuration.pingInterval = random.chance(30) ? .zero : random.milliseconds(20...4000)
        configuration.pongTimeout = random.chance(15) ? .zero : random.milliseconds(20...4000)
        // Not drawn, so that the seeds that failed once keep their meaning.
        let openMilliseconds = configuration.openTimeout.clampedNanoseconds / 1_000_000
        configuration.requiresPong = openMilliseconds % 2 == 0
        configuration.idleTimeout = random.chance(75) ? .zero : random.milliseconds(100...3000)
        configuration.compression.enabled = random.chance(70)
        configuration.compression.level = random.pick([0, 1, 1, 3, 9])
        configuration.compression.minimumBytes = random.pick([0, 1, 100])
        configuration.compression.clientMaxWindowBits = random.within(9...15)
        configuration.compression.serverMaxWindowBits = random.within(8...15)
        configuration.compression.clientNoContextTakeover = random.chance(30)
        configuration.compression.serverNoContextTakeover = random.chance(30)
        if random.chance(30) { try configuration.addSubprotocol("chat") }
        if random.chance(20) { try configuration.addSubprotocol("other") }
        if random.chance(20) { try configuration.addHeader(name: "X-Trace", value: "a, b") }
    }

    private mutating func beGentle() {
        for link in [\Plan.up, \Plan.down] {
            self[keyPath: link].latency = 100...random.pick([200, 5000])
            self[keyPath: link].bytesPerMillisecond = 0
            self[keyPath: link].sendBuffer = random.pick([16_384, 200_000])
            self[keyPath: link].receiveBuffer = random.pick([16_384, 200_000])
        }
        configuration.openTimeout = .seconds(10)
        if configuration.idleTimeout > .zero { configuration.idleTimeout = .seconds(40) }
        configuration.limits.headerBytes = 4096
        for option in [
            \WebSocketConfiguration.closeTimeout, \WebSocketConfiguration.pongTimeout,
        ] where configuration[keyPath: option] > .zero {
            configuration[keyPath: option] = .seconds(20)
        }
    }

    private mutating func beHarsh() {
        if random.chance(15) { greeting = random.pick(Greeting.allCases) }
        if random.chance(40) { pongs = random.pick(Pongs.allCases) }
        if random.chance(40) { closeAnswer = random.pick(CloseAnswer.allCases) }
        switch random.below(8) {
        case 0: reading = .trickle(bytes: isTiny ? random.within(1...200) : 2000)
        case 1: reading = .stops
        default: break
        }
        if random.chance(45) { down.faults = faults() }
        if random.chance(20) { up.faults = faults() }
        if isCorrupted {
            // If a window is smaller than its message, or the ratio is checked in the middle, the
            // error of a broken message depends on how its bytes were split.
            configuration.compression.serverMaxWindowBits = 15
            configuration.limits.inflateRatio = 0
        }
        horizon = random.pick([.seconds(3), .seconds(20), .seconds(60)])
    }

    private mutating func faults() -> [(at: Int, Link.Fault)] {
        let reach = isTiny ? 1500 : 20_000
        // Mostly after the handshake, which has about 200 bytes.
        let places = (0..<random.within(1...3)).map { _ in
            random.chance(85) ? 150 + random.below(reach) : random.below(300)
        }
        return places.sorted().map { place in
            let fault: Link.Fault =
                switch random.below(6) {
                case 0: .cut
                case 1: .reset(keepsArrived: random.chance(50))
                case 2, 3: .stall(random.milliseconds(1...5000))
                case 4: .corrupt(UInt8(truncatingIfNeeded: 1 << random.below(8)))
                default: .swallow
                }
            return (place, fault)
        }
    }

    // MARK: The peer's script

    private mutating func writeScript() {
        let count = random.pick([0, 1, 3, 10, isTiny ? 40 : 15])
        let hurry = random.chance(40)
        for _ in 0..<count {
            let pause: Duration = hurry ? .zero : random.milliseconds(0...300)
            script.append((pause, act()))
        }
        // The end often comes in one read with messages before it.
        let pause: Duration = random.chance(50) ? .zero : random.milliseconds(0...500)
        script.append((pause, ending()))
    }

    private mutating func act() -> Act {
        switch random.below(isGentle ? 18 : 20) {
        case 0...1: .ping(random.bytes(random.below(126)))
        case 2: .pong(random.bytes(random.below(126)))
        case 18: .pingFlood(isTiny ? 30 : 800)
        default: message()
        }
    }

    private mutating func message() -> Act {
        let manner = random.chance(60) ? random.pick(PeerDeflater.Manner.allCases) : nil
        let fragments = random.chance(60) ? 1 : random.within(2...6)
        let (kind, payload) = content()
        return .message(
            opcode: kind == .text ? 1 : 2, payload, fragments: fragments, manner)
    }

    private mutating func ending() -> Act {
        switch random.below(isGentle ? 6 : 12) {
        case 0...1:
            let code = random.pick([1000, 1001, 1011, 3000, 4999] as [UInt16])
            return .close(code, random.chance(50) ? Array("good bye ✓".utf8) : [])
        case 2: return .close(nil, [])
        case 3...7:
            let isBomb = configuration.limits.inflateRatio > 0 && random.chance(40)
            return .misbehave(isBomb ? .bomb : random.pick(Misbehaviour.allCases))
        case 8: return .garbage(random.bytes(random.within(1...200)))
        case 9: return .half(random.bytes(100))
        case 10: return .hangUp
        default: return .reset
        }
    }

    mutating func content() -> (MessageKind, [UInt8]) {
        let length = random.length(upTo: messageBytes)
        switch random.below(3) {
        case 0: return (.binary, random.bytes(length))
        case 1:
            // Text that compresses well, but not like a bomb.
            let unit = Array("{\"id\":\(random.below(1000)),\"v\":[".utf8) + random.bytes(3)
            return (.binary, (0..<length).map { unit[$0 % unit.count] })
        default: return (.text, Plan.text(length, &random))
        }
    }

    /// UTF-8 of exactly `length` bytes, with characters of every width.
    private static func text(_ length: Int, _ random: inout Random) -> [UInt8] {
        let words = ["plain text ", "é", "€", "𝄞", "日本", "\u{0}", "a", "\u{10FFFF}"].map {
            Array($0.utf8)
        }
        var text: [UInt8] = []
        while text.count < length {
            let word = random.pick(words)
            text += text.count + word.count <= length ? word : [97]
        }
        return text
    }

    // MARK: The user

    private mutating func writeUser() {
        for _ in 0..<random.pick([0, 2, 6, isTiny ? 20 : 10]) {
            let at = random.milliseconds(0...3000)
            switch random.below(20) {
            case 0: user.append((at, .ping(random.bytes(random.below(126)))))
            case 1...3: user.append((at, .pause(random.milliseconds(1...2000))))
            case 4...5:
                let (kind, payload) = content()
                let ends = (0..<random.below(4)).map { _ in random.below(payload.count + 1) }
                user.append((at, .stream(kind, payload, ends: ends.sorted())))
            default:
                let (kind, payload) = content()
                user.append((at, .send(kind, payload)))
            }
        }
        if random.chance(25) {
            let code = random.pick([nil, .normal, .goingAway, CloseCode(rawValue: 4000)])
            let reason = code == nil ? "" : random.pick(["", "enough of it"])
            user.append((random.milliseconds(0...4000), .close(code, reason)))
        }
        user.sort { $0.at < $1.at }
        echoes = random.pick([0, 0, 30, 100])
        pauses = random.pick([0, 0, 10])
        closes = random.pick([0, 0, 0, 2, 20])
    }
}
