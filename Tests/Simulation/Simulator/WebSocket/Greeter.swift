import Wire

/// The server's side of the opening handshake: checks the request, and answers correctly or not.
enum Greeter {
    struct Deflate {
        var serverBits = 15
        var clientBits = 15
        var serverNoContext = false
        var clientNoContext = false
    }

    struct Answer {
        var bytes: [UInt8]
        var deflate: Deflate?
        /// Where the request ends.
        var requestBytes: Int
        /// What is wrong with the request.
        var fault: String?
    }

    /// nil if the request is incomplete.
    static func answer(_ request: [UInt8], _ plan: Plan, _ random: inout Random) -> Answer? {
        let blank: [UInt8] = [13, 10, 13, 10]
        guard request.count >= 4,
            let end = (0...(request.count - 4)).first(where: {
                request[$0..<($0 + 4)].elementsEqual(blank)
            })
        else { return nil }
        let text = String(decoding: request[..<end], as: UTF8.self)
        let lines = text.split(separator: "\r\n").map(String.init)
        let fields = lines.dropFirst().map { line -> (String, String) in
            let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
            guard parts.count == 2 else { return (line, "") }
            return (parts[0].lowercased(), String(parts[1].drop { $0 == " " }))
        }
        func value(_ name: String) -> String? { fields.first { $0.0 == name }?.1 }
        var fault: String?
        if lines.first != "GET /chat?room=1 HTTP/1.1" { fault = "begins wrong" }
        if value("host") != "peer.test" { fault = "has no host" }
        if value("sec-websocket-version") != "13" { fault = "has no version" }
        let key = value("sec-websocket-key") ?? ""
        if key.utf8.count != 24 { fault = "has no key" }
        var head = Head(random: random.split())
        var deflate: Deflate?
        if plan.greeting != .accept {
            head.refuse(plan.greeting, key)
        } else {
            head.accept(key)
            if let offer = value("sec-websocket-extensions"), random.chance(85) {
                deflate = agree(offer, &random)
                if let deflate { head.add("Sec-WebSocket-Extensions", describe(deflate)) }
            }
            if let offer = value("sec-websocket-protocol"), random.chance(70) {
                head.add("Sec-WebSocket-Protocol", offer.split(separator: ",").map(String.init)[0])
            }
        }
        return Answer(bytes: head.bytes, deflate: deflate, requestBytes: end + 4, fault: fault)
    }

    private static func agree(_ offer: String, _ random: inout Random) -> Deflate? {
        var deflate = Deflate()
        for part in offer.split(separator: ";").dropFirst() {
            let pair = part.split(separator: "=").map { $0.drop { $0 == " " } }
            // The network may have corrupted the offer.
            let bits = min(max(pair.count > 1 ? Int(pair[1]) ?? 15 : 15, 8), 15)
            switch pair[0] {
            case "server_no_context_takeover": deflate.serverNoContext = true
            case "client_no_context_takeover": deflate.clientNoContext = true
            case "server_max_window_bits": deflate.serverBits = bits
            case "client_max_window_bits": deflate.clientBits = bits
            default: return nil
            }
        }
        // A server may ask for less than was offered.
        if deflate.serverBits < 15 || random.chance(30) {
            deflate.serverBits = random.within(8...deflate.serverBits)
        }
        if random.chance(30) { deflate.clientBits = random.within(8...deflate.clientBits) }
        if random.chance(20) { deflate.serverNoContext = true }
        if random.chance(20) { deflate.clientNoContext = true }
        return deflate
    }

    private static func describe(_ deflate: Deflate) -> String {
        var text = "permessage-deflate"
        if deflate.serverNoContext { text += "; server_no_context_takeover" }
        if deflate.clientNoContext { text += "; client_no_context_takeover" }
        if deflate.serverBits < 15 { text += "; server_max_window_bits=\(deflate.serverBits)" }
        if deflate.clientBits < 15 { text += "; client_max_window_bits=\(deflate.clientBits)" }
        return text
    }
}

/// A response head, written with all the freedom that HTTP allows.
private struct Head {
    private var random: Random
    private var status = "HTTP/1.1 101 Switching Protocols"
    private var fields: [String] = []
    private var before: [UInt8] = []
    private var body: [UInt8] = []
    private var cut: Int?

    init(random: Random) { self.random = random }

    mutating func add(_ name: String, _ value: String) {
        let name = random.pick([name, name, name.uppercased(), name.lowercased()])
        let blank = random.pick(["", " ", " \t "])
        fields.append("\(name):\(blank)\(value)\(random.pick(["", " "]))")
    }

    mutating func accept(_ key: String) {
        let digest = sha1(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)) ?? []
        add("Upgrade", random.pick(["websocket", "WebSocket"]))
        add("Connection", random.pick(["Upgrade", "keep-alive, upgrade"]))
        add("Sec-WebSocket-Accept", base64(digest))
        if random.chance(20) { add("Server", "scripted") }
        if random.chance(10) {
            before = Array("HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n".utf8)
        }
    }

    mutating func refuse(_ greeting: Plan.Greeting, _ key: String) {
        if greeting != .garbage { accept(key) }
        switch greeting {
        case .accept: break
        case .refuse:
            status =
                "HTTP/1.1 " + random.pick(["200 OK", "301 Moved", "401 No", "503 Later", "404"])
            body = Array("<html>no</html>".utf8)
        case .wrongAccept: replace("sec-websocket-accept", "Sec-WebSocket-Accept: AAAA")
        case .noUpgrade: replace("upgrade", "X-Upgrade: websocket")
        case .oldHTTP: status = "HTTP/1.0 101 Switching Protocols"
        case .otherExtension: add("Sec-WebSocket-Extensions", "x-webkit-deflate-frame")
        case .wrongWindow:
            add("Sec-WebSocket-Extensions", "permessage-deflate; server_max_window_bits=16")
        case .otherProtocol: add("Sec-WebSocket-Protocol", "mqtt")
        case .tooLong: add("X-Filler", String(repeating: "x", count: 5000))
        case .tooManyInterim:
            let interim = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
            before = Array((0..<20).map { _ in interim }.joined())
        case .garbage:
            before = [0] + random.bytes(100) + [10]
        case .silence: cut = 0
        case .hangUp: cut = random.below(60)
        }
    }

    private mutating func replace(_ name: String, _ line: String) {
        fields = fields.map { $0.lowercased().hasPrefix(name + ":") ? line : $0 }
    }

    var bytes: [UInt8] {
        var random = random
        var text = status + "\r\n"
        for field in fields { text += field + (random.chance(10) ? "\n" : "\r\n") }
        let all = before + Array((text + "\r\n").utf8) + body
        return cut.map { Array(all.prefix($0)) } ?? all
    }
}
