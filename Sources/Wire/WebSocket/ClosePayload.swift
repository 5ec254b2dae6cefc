/// The payload of a close frame: empty, or a code and a reason (RFC 6455 §5.5.1).
package enum ClosePayload {
    /// The longest reason: a control frame's 125 bytes minus two for the code.
    package static let maximumReasonBytes = 123

    /// The peer's code and reason; `noStatus` if the payload is empty.
    package static func parse(
        _ payload: UnsafeRawBufferPointer
    ) throws(ProtocolFailure) -> (CloseCode, String) {
        if payload.isEmpty { return (.noStatus, "") }
        guard payload.count >= 2 else {
            throw ProtocolFailure(.protocolError, "close frame of one byte")
        }
        let code = CloseCode(rawValue: UInt16(payload[0]) << 8 | UInt16(payload[1]))
        guard code.mayBeSent else {
            throw ProtocolFailure(.protocolError, "close frame with the reserved code \(code)")
        }
        let reason = UnsafeRawBufferPointer(rebasing: payload[2...])
        guard UTF8Validator.isValid(reason) else {
            throw ProtocolFailure(.invalidPayload, "close reason is not valid UTF-8")
        }
        return (code, String(decoding: reason, as: UTF8.self))
    }

    package static func bytes(_ code: CloseCode?, reason: String) -> [UInt8] {
        guard let code else { return [] }
        return [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)] + Array(reason.utf8)
    }
}
