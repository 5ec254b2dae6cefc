import Session
import Wire

/// What must hold when a run is over: the user received what the naive reader finds in the same
/// bytes, and the peer received what the user sent.
struct Verdict {
    let world: World
    let plan: Plan
    let user: User
    let client: Client
    let peer: Peer

    private var guardian: Guardian { client.guardian }

    func check() {
        guard let ending = user.ending else { return world.fail("it never ended") }
        world.count("ended with \(ending.code)\(ending.isClean ? ", clean" : "")")
        world.require(user.errors.count <= 1, "errors: \(user.errors)")
        if user.opened {
            checkOpened(ending)
            checkSent()
        } else {
            checkRefused(ending)
        }
    }

    // MARK: The handshake

    private func checkRefused(_ ending: User.Ending) {
        world.require(user.delivered.isEmpty, "messages without a handshake")
        world.require(
            ending == User.Ending(code: .abnormal, reason: "", isClean: false),
            "ended with \(ending) before it was open")
        guard user.close == nil else {
            return world.require(user.errors.isEmpty, "an error after the user's close")
        }
        guard let error = user.errors.first else { return world.fail("refused without an error") }
        world.count("handshake error \(error)")
        world.require(
            !plan.isGentle, "the handshake failed (\(error)) although nothing was wrong")
        // A fault of the network may show first.
        guard !plan.isCorrupted, !plan.isCorruptedUpward,
            ![.timeout, .connectionLost].contains(error)
        else { return }
        let expected: [RealtimeError.Code] =
            switch plan.greeting {
            // A 301 without a Location cannot be followed.
            case .refuse: [.httpStatus, .redirect]
            case .tooLong: [.tooLarge]
            case .accept, .silence, .hangUp: []
            default: [.handshake]
            }
        world.require(expected.contains(error), "\(plan.greeting) was reported as \(error)")
    }

    // MARK: Received messages

    private func checkOpened(_ ending: User.Ending) {
        world.require(
            plan.greeting == .accept || plan.isCorrupted, "opened despite \(plan.greeting)")
        var rules = NaiveReader.Rules()
        rules.messageLimit = plan.messageLimit
        rules.inflateRatio = plan.configuration.limits.inflateRatio
        rules.deflate = client.agreed.map {
            ($0.serverMaxWindowBits, $0.serverNoContextTakeover)
        }
        let naive = NaiveReader(Array(guardian.stream[guardian.headBytes...]), rules)
        let messages = naive.events.filter(\.isMessage)
        world.trace(
            "naive", "\(messages.count) messages, failure \(naive.failure.sorted())")
        checkMessages(messages)
        checkEnding(ending, naive)
        checkCloseFrame(naive)
        checkCounts(messages)
        if !plan.isCorrupted { checkScript(naive, messages) }
    }

    private func checkMessages(_ messages: [NaiveReader.Event]) {
        world.require(
            user.delivered.count <= messages.count,
            "\(user.delivered.count) messages delivered, \(messages.count) came")
        for (index, (told, came)) in zip(user.delivered, messages).enumerated()
        where told.opcode != came.opcode || told.payload != came.payload {
            return world.fail("message \(index) is not the one that came")
        }
        var complete = 0
        for (used, delivered) in guardian.checkpoints {
            while complete < messages.count, messages[complete].end <= used { complete += 1 }
            world.require(
                delivered == complete,
                "\(delivered) messages delivered of \(complete) in \(used) bytes")
        }
        guard user.close == nil || guardian.closedIn == .finished else { return }
        world.require(
            user.delivered.count == messages.count,
            "\(messages.count - user.delivered.count) messages were never delivered")
    }

    private func checkEnding(_ ending: User.Ending, _ naive: NaiveReader) {
        // After our own close, errors are not reported.
        let isOwnClose = guardian.closedIn == .open || guardian.closedIn == .closing
        var errors: [RealtimeError.Code] = []
        if !naive.failure.isEmpty {
            world.require(
                naive.failure.contains(ending.code.rawValue) && !ending.isClean
                    && ending.reason.isEmpty,
                "ended with \(ending) for a violation of \(naive.failure.sorted())")
            errors = [ending.code == .messageTooBig ? .tooLarge : .protocolViolation]
        } else if let (code, reason) = naive.close {
            let expected = User.Ending(
                code: CloseCode(rawValue: code), reason: String(decoding: reason, as: UTF8.self),
                isClean: true)
            world.require(ending == expected, "ended with \(ending) instead of \(expected)")
        } else if let code = guardian.timeoutCode {
            world.require(
                ending == User.Ending(code: code, reason: "", isClean: false),
                "ended with \(ending) after a timeout")
            errors = [.timeout]
        } else {
            world.require(
                ending == User.Ending(code: .abnormal, reason: "", isClean: false),
                "ended with \(ending) without a close frame")
            errors = [.connectionLost]
        }
        let expected = isOwnClose ? [] : errors
        world.require(user.errors == expected, "reported \(user.errors), not \(expected)")
    }

    /// Checks the statistics.
    private func checkCounts(_ messages: [NaiveReader.Event]) {
        guard let counts = client.counts else { return world.fail("nothing was counted") }
        world.require(
            counts.messagesReceived == UInt64(messages.count),
            "counts \(counts.messagesReceived) messages, \(messages.count) came")
        world.require(
            counts.messagesSent == UInt64(user.sent.count),
            "counts \(counts.messagesSent) messages sent, sent were \(user.sent.count)")
    }

    /// Checks our close frame on the wire, if it got through.
    private func checkCloseFrame(_ naive: NaiveReader) {
        guard let (code, reason) = peer.heardClose, !plan.isCorruptedUpward else { return }
        let expected: Set<UInt16>
        if let close = user.close, guardian.closedIn == .open {
            expected = [close.code?.rawValue ?? 1005]
            world.require(
                reason.elementsEqual(close.reason.utf8), "the close frame has another reason")
        } else if !naive.failure.isEmpty {
            expected = naive.failure
        } else if let (code, _) = naive.close {
            expected = [code]
        } else {
            expected = guardian.timeoutCode.map { [$0.rawValue] } ?? []
        }
        world.require(
            expected.contains(code), "the close frame has \(code), not \(expected.sorted())")
    }

    /// Checks the naive reader itself, against the peer's script.
    private func checkScript(_ naive: NaiveReader, _ messages: [NaiveReader.Event]) {
        let isGarbled = plan.isGarbled
        world.require(
            isGarbled || messages.count <= peer.said.count, "more messages than the peer sent")
        for (came, said) in zip(messages, peer.said)
        where came.opcode != said.opcode || came.payload != said.payload {
            return world.fail("a message came that the peer did not send")
        }
        if let misbehaviour = peer.misbehaviour, !isGarbled {
            world.require(
                naive.failure.isSubset(of: [misbehaviour.closeCode]),
                "\(misbehaviour) was found to be \(naive.failure.sorted())")
            if !naive.failure.isEmpty { world.count("caught \(misbehaviour)") }
        } else if !isGarbled {
            world.require(naive.failure.isEmpty, "a violation that the peer did not commit")
        }
        world.require(
            isGarbled || user.pongCount <= peer.answers, "more pongs than pings that were answered")
        guard plan.isGentle, user.close == nil else { return }
        world.require(messages.count == peer.said.count, "messages were lost")
        world.require(
            naive.close != nil || naive.failure == [peer.misbehaviour?.closeCode ?? 0],
            "the connection ended otherwise than the peer ended it")
    }

    // MARK: Sent messages

    private func checkSent() {
        guard !plan.isCorruptedUpward else { return }
        world.require(peer.heard.count <= user.sent.count, "the peer heard more than was sent")
        for (index, (heard, sent)) in zip(peer.heard, user.sent).enumerated()
        where heard.opcode != sent.opcode || heard.payload != sent.payload {
            return world.fail("message \(index) is not the one that was sent")
        }
        if peer.heardClose != nil {
            world.require(
                peer.heard.count == user.sent.count,
                "\(user.sent.count - peer.heard.count) messages missing before the close frame")
        }
        checkPongs()
        guard plan.isGentle, let ending = user.ending, ending.isClean else { return }
        world.require(peer.heardClose != nil, "the closing handshake had one half only")
    }

    /// Pongs answer the peer's pings in order; some may be missing if much waits to be sent.
    private func checkPongs() {
        guard !plan.isCorrupted, !plan.isGarbled else { return }
        var rest = peer.pings[...]
        for pong in peer.heardPongs {
            guard let index = rest.firstIndex(of: pong) else {
                return world.fail("a pong that answers no ping, or out of order")
            }
            rest = rest[(index + 1)...]
        }
        guard plan.isGentle, plan.isTiny, peer.heardClose != nil, guardian.closedIn != .open
        else { return }
        world.require(peer.heardPongs.count == peer.pings.count, "a ping was not answered")
    }
}
