import Documents
import Session
package import Wire

/// Gives a client the commands of a recorded scenario, and compares its events with those that were
/// recorded. What a file contains is documented next to the files.
package struct DDPReplay {
    var session: DDPSession
    var source: DDPReplaySource
    var now = Instant(nanoseconds: 0)
    /// What the client did since the last command.
    var events: [EJSON] = []
    /// The socket that was opened last, while it is open.
    var socket: UInt64?
    /// The socket that the client wants to be opened.
    var dialed: UInt64?
    /// The client has dropped its socket, and has not said what follows.
    var hasDropped = false
    var stubs: [String: DDPReplayStub] = [:]
    var callTags: [DDPSession.CallID: (tag: String, isWrite: Bool)] = [:]
    var subscriptionTags: [DDPSession.SubscriptionHandle: String] = [:]
    var handles: [String: DDPSession.SubscriptionHandle] = [:]
    var queryTags: [LiveQueryID: String] = [:]
    /// The calls that are made at each open.
    var hook: [DDPReplayCall] = []

    /// - Parameters:
    ///   - file: its name, for the differences.
    /// - Returns: a line for each command whose events differ: file, number of the command, the
    ///   command, the events that were expected, and those that came.
    /// - Throws: an error if the text is not a scenario.
    package static func differences(
        file: String, text: [UInt8]
    ) throws(RealtimeError) -> [String] {
        var document = JSONDocument()
        return try text.withUnsafeBufferPointer { text throws(RealtimeError) in
            try document.read(UnsafeRawBufferPointer(text)) { root throws(RealtimeError) in
                guard let commands = root.member("commands"), commands.kind == .array else {
                    throw RealtimeError(.invalidArgument, "\(file) contains no commands")
                }
                var replay = DDPReplay(root)
                return try replay.differences(file, commands)
            }
        }
    }

    private init(_ root: JSONNode) {
        var configuration = DDPConfiguration()
        let settings = root.member("settings")
        func time(_ name: StaticString, _ standard: Int64) -> Duration {
            .milliseconds(settings?.member(name)?.integer ?? standard)
        }
        configuration.bufferInterval = time("bufferInterval", 0)
        configuration.bufferMaxAge = time("bufferMaxAge", 500)
        configuration.heartbeatInterval = time("heartbeatInterval", 0)
        configuration.heartbeatTimeout = time("heartbeatTimeout", 15_000)
        let versions = settings?.texts("versions") ?? []
        if !versions.isEmpty { configuration.versions = versions }
        // The scenario says when the socket opens.
        configuration.connectTimeout = .zero
        configuration.quiescenceLimit = .zero
        configuration.unusedSubscriptionTime = .zero
        session = DDPSession(configuration)
        source = DDPReplaySource(
            subscriptionIDs: root.texts("subIds"), seeds: root.texts("seeds"))
        session.connect(now: now)
        takeEvents()
    }

    private mutating func differences(
        _ file: String, _ commands: JSONNode
    ) throws(RealtimeError) -> [String] {
        var differences: [String] = []
        for (index, command) in commands.elements.enumerated() {
            events = []
            try run(command)
            takeEvents()
            let came = EJSON.array(events.map { $0.sortingCleared })
            var expected: [EJSON] = []
            if let list = command.member("expect") {
                for event in list.elements { expected.append(try EJSON(event).sortingCleared) }
            }
            guard came != .array(expected) else { continue }
            differences.append(
                "\(file): command \(index) (\(command.text("do"))): \(EJSON.array(expected).text)"
                    + " expected, \(came.text) came")
        }
        if !source.isExhausted { differences.append("\(file): not all ids and seeds were drawn") }
        return differences
    }

    // MARK: Time and sockets

    mutating func advance(_ time: Duration) {
        let end = now + time
        while let due = session.wakeUp, due <= end {
            now = max(now, due)
            session.timeReached(now)
            takeEvents()
        }
        now = end
    }

    mutating func open() throws(RealtimeError) {
        if dialed == nil {
            // The scenario does not wait for the delay between attempts.
            session.connect(now: now)
            takeEvents()
        }
        guard let number = dialed else { return }
        (socket, dialed) = (number, nil)
        session.beginOpening(number, now: now)
        takeEvents()
        for call in hook { try make(call) }
        session.opened(number, now: now)
    }

    /// The socket has closed. A client that dropped it by itself knows already.
    mutating func lost() {
        guard let number = socket else { return }
        socket = nil
        session.ended(number, DDPSocketEnd(closeCode: nil, reason: "", error: nil), now: now)
    }

    mutating func receive(_ text: UnsafeRawBufferPointer) {
        guard let socket else { return }
        var reader = DDPReader()
        session.received(reader.read(text), bytes: text.count, on: socket, now: now)
    }
}

/// Hands out the recorded ids and seeds.
struct DDPReplaySource: DDPRandomSource {
    var subscriptionIDs: [String]
    var seeds: [String]

    var isExhausted: Bool { subscriptionIDs.isEmpty && seeds.isEmpty }

    mutating func subscriptionID() -> String {
        subscriptionIDs.isEmpty ? "none" : subscriptionIDs.removeFirst()
    }

    mutating func seed() -> String { seeds.isEmpty ? "none" : seeds.removeFirst() }
}

extension JSONNode {
    /// The member as a text; "" if there is none.
    func text(_ name: StaticString) -> String { member(name)?.string ?? "" }

    func texts(_ name: StaticString) -> [String] {
        guard let list = member(name) else { return [] }
        return list.elements.compactMap { $0.string }
    }

    /// The member as EJSON, null if there is none.
    func value(_ name: StaticString) throws(RealtimeError) -> EJSON {
        guard let member = member(name) else { return .null }
        return try EJSON(member)
    }

    func values(_ name: StaticString) throws(RealtimeError) -> [EJSON] {
        var values: [EJSON] = []
        if let list = member(name) {
            for element in list.elements { values.append(try EJSON(element)) }
        }
        return values
    }
}

extension EJSON {
    /// The order of cleared fields does not matter.
    fileprivate var sortingCleared: EJSON {
        guard case .object(var event) = self else { return self }
        if case .array(let names)? = event["cleared"] {
            event["cleared"] = .array(names.sorted { EJSON.order($0, $1) < 0 })
        }
        if let message = event["msg"] { event["msg"] = message.sortingCleared }
        return .object(event)
    }
}
