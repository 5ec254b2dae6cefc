import Session
import Wire

/// How an attempt or an open leg ends; the required consequence (B9) is written next to it by hand.
struct SpreadbotFate {
    enum Kind {
        case unfit
        case unreachable
        case unauthorized
        case refused
    }

    let end: SpreadbotLegEnd
    let kind: Kind
    /// The delay that the server asks for.
    let asked: Duration

    private init(
        _ kind: Kind, _ code: RealtimeError.Code, status: Int = 0, close: UInt16? = nil,
        reached: Bool = false, asked: Int = 0
    ) {
        self.kind = kind
        self.asked = .seconds(min(asked, 300))
        var fields: [HeaderField] = []
        if asked > 0 { fields.append(HeaderField(name: "Retry-After", value: String(asked))) }
        let response =
            code == .httpStatus
            ? HTTPResponse(ResponseHead(status: status, fields: fields), body: []) : nil
        end = SpreadbotLegEnd(
            error: RealtimeError(code, "\(code) \(status) \(close ?? 0)", response: response),
            status: status, closeCode: close.flatMap { CloseCode(rawValue: $0) },
            reachedServer: reached)
    }

    static let noNetwork = SpreadbotFate(.unreachable, .connect)

    /// Nobody answers.
    static func away(isOpen: Bool, isElsewhere: Bool) -> SpreadbotFate {
        if isOpen { return SpreadbotFate(.unreachable, .connectionLost, reached: true) }
        return SpreadbotFate(isElsewhere ? .unfit : .unreachable, .connect)
    }

    static func unauthorized(
        _ transport: SpreadbotTransport, isOpen: Bool, _ random: inout Random
    ) -> SpreadbotFate {
        guard isOpen, transport == .webSocket else {
            return SpreadbotFate(
                .unauthorized, .httpStatus, status: random.pick([401, 401, 407]), reached: true)
        }
        return SpreadbotFate(
            .unauthorized, .connectionLost, close: random.pick([3000, 4401]), reached: true)
    }

    static func draw(
        _ plan: SpreadbotPlan, _ transport: SpreadbotTransport, isOpen: Bool, isLast: Bool,
        isElsewhere: Bool, _ random: inout Random
    ) -> SpreadbotFate {
        if random.chance(plan.unfit),
            let fate = unfit(transport, isOpen: isOpen, isLast: isLast, &random)
        {
            return fate
        }
        if random.chance(plan.refusing),
            let fate = refused(transport, isOpen: isOpen, isLast: isLast, &random)
        {
            return fate
        }
        if random.chance(plan.doubting), !isOpen || transport != .sse {
            return unauthorized(transport, isOpen: isOpen, &random)
        }
        return passing(transport, isOpen: isOpen, isElsewhere: isElsewhere, &random)
    }

    private static func unfit(
        _ transport: SpreadbotTransport, isOpen: Bool, isLast: Bool, _ random: inout Random
    ) -> SpreadbotFate? {
        let statuses = isLast ? [400, 405, 501] : [400, 403, 404, 426, 501]
        let status = SpreadbotFate(
            .unfit, .httpStatus, status: random.pick(statuses), reached: true)
        switch (transport, isOpen) {
        case (.webSocket, true):
            let codes: [UInt16] = [1002, 1003, 1007, 1009, 1010]
            return SpreadbotFate(
                .unfit, .protocolViolation, close: random.pick(codes), reached: true)
        case (.webSocket, false):
            return random.pick([
                status, SpreadbotFate(.unfit, .handshake, status: 101, reached: true),
                SpreadbotFate(.unfit, .handshake, reached: true),
                SpreadbotFate(.unfit, .timeout, reached: true),
                SpreadbotFate(.unfit, .connectionLost, reached: true),
                SpreadbotFate(.unfit, .redirect, reached: true),
            ])
        case (.sse, true): return nil
        case (.sse, false):
            return random.pick([
                status, SpreadbotFate(.unfit, .noContent, status: 204, reached: true),
                SpreadbotFate(.unfit, .contentType, status: 200, reached: true),
                SpreadbotFate(.unfit, .timeout, reached: true),
            ])
        case (.poll, _):
            return random.pick([
                status, SpreadbotFate(.unfit, .contentType, status: 200, reached: true),
            ])
        }
    }

    private static func refused(
        _ transport: SpreadbotTransport, isOpen: Bool, isLast: Bool, _ random: inout Random
    ) -> SpreadbotFate? {
        if isOpen, transport == .webSocket {
            return SpreadbotFate(
                .refused, .connectionLost, close: random.pick([1008, 3003, 4403]), reached: true)
        }
        guard isLast, !isOpen || transport == .poll else { return nil }
        return SpreadbotFate(
            .refused, .httpStatus, status: random.pick([403, 404]), reached: true)
    }

    private static func passing(
        _ transport: SpreadbotTransport, isOpen: Bool, isElsewhere: Bool, _ random: inout Random
    ) -> SpreadbotFate {
        let status = SpreadbotFate(
            .unreachable, .httpStatus, status: random.pick([408, 425, 429, 500, 502, 503, 504]),
            reached: true, asked: random.pick([0, 0, 1, 20, 4000]))
        let refused = SpreadbotFate(isElsewhere && !isOpen ? .unfit : .unreachable, .connect)
        let below = [
            refused, SpreadbotFate(.unreachable, .resolve), SpreadbotFate(.unreachable, .tls),
            SpreadbotFate(.unreachable, .timeout),
        ]
        switch (transport, isOpen) {
        case (.webSocket, true):
            let codes: [UInt16] = [1000, 1001, 1011, 1012, 1013, 4000]
            return random.pick([
                SpreadbotFate(.unreachable, .connectionLost, reached: true),
                SpreadbotFate(.unreachable, .timeout, reached: true),
                SpreadbotFate(
                    .unreachable, .connectionLost, close: random.pick(codes), reached: true),
            ])
        case (.sse, true):
            return random.pick([
                SpreadbotFate(.unreachable, .connectionLost, status: 200, reached: true),
                SpreadbotFate(.unreachable, .timeout, status: 200, reached: true),
                SpreadbotFate(.unreachable, .connectionLost, reached: true),
            ])
        case (.webSocket, false): return random.pick(below + [status])
        case (.sse, false), (.poll, _):
            let lost = SpreadbotFate(.unreachable, .connectionLost, reached: true)
            return random.pick(below + [status, lost])
        }
    }
}
