import CShims
import Session
import Wire

/// One attempt on one transport. It tries once; the session decides what follows from its end.
final class SpreadbotLeg {
    enum Kind {
        case webSocket(WebSocketLeg)
        case sse(EventSourceConnection)
        case poll(LongPollConnection)
    }

    let number: UInt64
    let kind: Kind
    /// The token that its requests carry.
    var accessToken: String
    /// For a probe: the WebSocket was opened.
    var hasOpened = false
    /// The argument of the open handler, until it is called.
    var opened: Opened?
    /// Frames have headers, according to Nchan's subprotocol.
    var hasMeta = false
    /// The frame that must be followed by a ping after the pause.
    var owedPing: SpreadbotSend.ID?
    /// The last id of the event stream.
    var lastID: [UInt8]
    /// The undelivered rest of a poll's response with several messages, for later turns or the end
    /// of a pause.
    var batch = SpreadbotBatch()
    /// A turn that will continue with it is queued.
    var isContinuing = false
    /// The number of its elements without data.
    var skipped = 0
    /// How the leg ended; reported after the batch.
    var end: SpreadbotLegEnd?
    /// The offsets of the frames' ends among all written bytes, in order, after `passed`.
    private var marks: [(id: SpreadbotSend.ID, end: UInt64)] = []
    /// This frame and all before it were written.
    private var passed: SpreadbotSend.ID = 0

    init(_ attempt: SpreadbotSession.Attempt, _ kind: Kind) {
        number = attempt.number
        accessToken = attempt.accessToken
        lastID = Array(attempt.cursor.utf8)
        self.kind = kind
    }

    var webSocket: WebSocketLeg? { if case .webSocket(let leg) = kind { leg } else { nil } }

    /// Whether the server of a WebSocket has responded.
    var reachedServer: Bool {
        webSocket?.connection.reachedServer ?? false
    }

    func pause() {
        switch kind {
        case .webSocket(let leg): leg.setPaused(true)
        case .sse(let source): try? source.pause()
        case .poll(let poll): try? poll.pause()
        }
    }

    func resume() {
        switch kind {
        case .webSocket(let leg): leg.setPaused(false)
        case .sse(let source): try? source.resume()
        case .poll(let poll): try? poll.resume()
        }
    }

    func retryNow() {
        switch kind {
        case .webSocket(let leg): try? leg.connection.retryNow()
        case .sse(let source): try? source.retryNow()
        case .poll(let poll): try? poll.retryNow()
        }
    }

    /// Drops the leg: nothing more of it is reported.
    func drop() {
        switch kind {
        case .webSocket(let leg): leg.connection.abandon()
        case .sse(let source): source.close()
        case .poll(let poll): poll.close()
        }
    }

    // MARK: Frames

    func write(_ send: SpreadbotSend) {
        guard let webSocket else { return }
        let error = webSocket.send(send.kind == .text ? .text : .binary, send.payload)
        // With an error it is closing: the next leg sends this one again.
        marks.append((send.id, error == nil ? webSocket.connection.bytesQueued : .max))
    }

    /// The last frame that was written completely; 0 for none.
    var written: SpreadbotSend.ID {
        guard let bytes = webSocket?.connection.bytesWritten else { return 0 }
        return marks.last { $0.end <= bytes }?.id ?? passed
    }

    /// Drops the offsets of frames up to this one, which are not needed any more.
    func pass(_ id: SpreadbotSend.ID) {
        passed = max(passed, id)
        marks.removeFirst(marks.prefix { $0.id <= id }.count)
    }
}

extension SpreadbotLegEnd {
    init(_ failure: HTTPSourceFailure) {
        self.init(
            error: failure.error, status: failure.status,
            reachedServer: !failure.precedesRequest)
    }
}

extension WebSocketConnection {
    /// All bytes that the kernel has taken, without handshakes. The loop's owner only.
    var bytesWritten: UInt64 { counters.wireBytesSent.current }

    /// Likewise, including bytes that wait to be written.
    var bytesQueued: UInt64 {
        bytesWritten &+ UInt64(session?.pointee.outgoing.count ?? 0)
    }
}

extension SpreadbotConfiguration {
    /// The URL and the headers of an attempt (B1, B3, B7).
    private func request(
        _ attempt: SpreadbotSession.Attempt
    ) throws(RealtimeError) -> (url: HTTPURL, fields: [HeaderField]) {
        var url = try url(of: attempt.transport, path: attempt.path)
        var fields = fields
        if !attempt.accessToken.isEmpty {
            let bearer = try HeaderField.bearerAuthorization(attempt.accessToken)
            fields.append(HeaderField(name: "Authorization", value: bearer))
            if let name = tokenQueryParameter { url = url.withQuery(name, attempt.accessToken) }
        }
        if let name = idQueryParameter, !attempt.cursor.isEmpty {
            url = url.withQuery(name, attempt.cursor)
        }
        return (url, fields)
    }

    func makeWebSocket(
        _ attempt: SpreadbotSession.Attempt, on loop: Loop
    ) throws(RealtimeError) -> WebSocketLeg {
        let (url, common) = try request(attempt)
        var fields = common
        if !attempt.cursor.isEmpty {
            fields.append(HeaderField(name: "Last-Event-ID", value: attempt.cursor))
        }
        return try WebSocketLeg(url, fields, network, redirects, on: loop) {
            options throws(RealtimeError) in
            // First, because Nchan checks only the first one.
            try options.addSubprotocol(SpreadbotFrame.subprotocol)
            options.openTimeout = http.connectTimeout
            options.answerTimeout = answerTimeout
            options.pingInterval = pingInterval
            options.pongTimeout = pingInterval
            options.compression.enabled = http.compression
            options.limits.messageBytes = maxMessageBytes
            // The session limits unconfirmed frames, and a ping must never be refused.
            options.sendLimit = 0
        }
    }

    func makeEventSource(
        _ attempt: SpreadbotSession.Attempt, on loop: Loop
    ) throws(RealtimeError) -> EventSourceConnection {
        let (url, fields) = try request(attempt)
        let source = try EventSourceConnection(url: url.text, on: loop)
        source.isLeg = true
        try source.configure { (options) throws(RealtimeError) in
            options.url = url
            for field in fields { try options.addHeader(name: field.name, value: field.value) }
            try options.setLastEventID(attempt.cursor)
            options.reconnects = false
            options.network = network
            options.redirects = redirects
            options.http = http
            options.responseTimeout = answerTimeout
            options.limits.data = maxMessageBytes
            options.limits.line = maxMessageBytes
        }
        return source
    }

    func makeLongPoll(
        _ attempt: SpreadbotSession.Attempt, on loop: Loop
    ) throws(RealtimeError) -> LongPollConnection {
        let url = try url(of: .poll, path: attempt.path)
        let poll = try LongPollConnection(url: url.text, on: loop)
        poll.isLeg = true
        try poll.configure { (options) throws(RealtimeError) in
            try setRequest(&options, attempt.path, attempt.accessToken)
            try options.setCursor(.headerID)
            options.sendsValidatorsToo = true
            options.secondIDParameter = idQueryParameter
            try options.setLastEventID(attempt.cursor)
            options.network = network
            options.redirects = redirects
            options.http = http
            options.interval = pollInterval
            options.pollTimeout = pollTimeout
            options.maxBodyBytes = maxMessageBytes
            // A response that comes at once did not wait for a message (B9).
            options.countsGatewayTimeouts = true
        }
        return poll
    }

    /// Sets the URL and headers of polls, with this token. The poll sets the parameter for the id
    /// itself, because it changes with each response.
    func setRequest(
        _ poll: inout LongPollConfiguration, _ path: String, _ accessToken: String
    ) throws(RealtimeError) {
        poll.url = try url(of: .poll, path: path)
        poll.clearHeaders()
        for field in fields { try poll.addHeader(name: field.name, value: field.value) }
        guard !accessToken.isEmpty else { return }
        let bearer = try HeaderField.bearerAuthorization(accessToken)
        try poll.addHeader(name: "Authorization", value: bearer)
        if let name = tokenQueryParameter { poll.url = poll.url.withQuery(name, accessToken) }
    }
}
