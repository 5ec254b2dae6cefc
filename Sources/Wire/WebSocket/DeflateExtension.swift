/// A client's offer of permessage-deflate (RFC 7692 §7.1). By default it has no conditions.
package struct DeflateOffer: Equatable, Sendable {
    /// The window for messages that we compress, 9 to 15. A smaller one saves memory on both sides.
    package var clientMaxWindowBits = 15
    /// The window for messages that the server compresses, 8 to 15.
    package var serverMaxWindowBits = 15
    /// Whether we compress each message on its own.
    package var clientNoContextTakeover = false
    /// Whether the server must compress each message on its own.
    package var serverNoContextTakeover = false

    package init() {}

    /// The offer for Sec-WebSocket-Extensions. It always has `client_max_window_bits`: without it,
    /// a server may not ask for a smaller window (RFC 7692 §7.1.2.2).
    package var headerValue: String {
        var value = "permessage-deflate"
        if serverNoContextTakeover { value += "; server_no_context_takeover" }
        if clientNoContextTakeover { value += "; client_no_context_takeover" }
        if serverMaxWindowBits < 15 { value += "; server_max_window_bits=\(serverMaxWindowBits)" }
        value += "; client_max_window_bits"
        if clientMaxWindowBits < 15 { value += "=\(clientMaxWindowBits)" }
        return value
    }
}

/// The parameters that client and server agreed on.
package struct DeflateParameters: Equatable, Sendable {
    /// The window that our messages may use, 8 to 15. With 8 we send them uncompressed, which a
    /// sender may always do (RFC 7692 §6), because zlib cannot compress with so small a window.
    package var clientMaxWindowBits: Int
    /// The window that the server's messages use, 8 to 15.
    package var serverMaxWindowBits: Int
    package var clientNoContextTakeover: Bool
    package var serverNoContextTakeover: Bool

    package init(
        clientMaxWindowBits: Int = 15, serverMaxWindowBits: Int = 15,
        clientNoContextTakeover: Bool = false, serverNoContextTakeover: Bool = false
    ) {
        self.clientMaxWindowBits = clientMaxWindowBits
        self.serverMaxWindowBits = serverMaxWindowBits
        self.clientNoContextTakeover = clientNoContextTakeover
        self.serverNoContextTakeover = serverNoContextTakeover
    }

    /// Whether our messages can be compressed under these parameters.
    package var canCompress: Bool { clientMaxWindowBits > 8 }

    /// Reads the server's Sec-WebSocket-Extensions, one string per header, and checks it against
    /// the offer. nil if the server chose no extension.
    /// - Throws: `.handshake` for each response that must fail the connection by RFC 6455 §4.1 or
    ///   RFC 7692 §7.1.
    package static func agreed(
        answer headers: [String], offer: DeflateOffer?
    ) throws(RealtimeError) -> DeflateParameters? {
        var agreed: DeflateParameters?
        for header in headers {
            for element in try ExtensionHeader.parse(header) {
                guard let offer, element.name == "permessage-deflate" else {
                    throw refused("chose \(element.name.quoted()), which was not offered")
                }
                if agreed != nil { throw refused("chose permessage-deflate twice") }
                agreed = try DeflateParameters(answer: element.parameters, offer: offer)
            }
        }
        return agreed
    }

    private init(
        answer: [ExtensionHeader.Parameter], offer: DeflateOffer
    ) throws(RealtimeError) {
        var seen: [String] = []
        var clientBits: Int?
        var serverBits: Int?
        for parameter in answer {
            guard !seen.contains(parameter.name) else {
                throw refused("sent \(parameter.name) of permessage-deflate twice")
            }
            seen.append(parameter.name)
            switch parameter.name {
            case "client_no_context_takeover", "server_no_context_takeover":
                if parameter.value != nil { throw refused("sent \(parameter.name) with a value") }
            case "client_max_window_bits": clientBits = try windowBits(parameter)
            case "server_max_window_bits": serverBits = try windowBits(parameter)
            default:
                throw refused(
                    "answered permessage-deflate with the unknown parameter "
                        + parameter.name.quoted())
            }
        }
        // A server accepts an offer with either server parameter by repeating it (§7.1.1.1,
        // §7.1.2.1).
        if offer.serverMaxWindowBits < 15, (serverBits ?? 15) > offer.serverMaxWindowBits {
            throw refused("did not respect server_max_window_bits=\(offer.serverMaxWindowBits)")
        }
        serverNoContextTakeover = seen.contains("server_no_context_takeover")
        if offer.serverNoContextTakeover, !serverNoContextTakeover {
            throw refused("did not accept server_no_context_takeover")
        }
        serverMaxWindowBits = serverBits ?? 15
        // We may always do more than the server asked: use a smaller window, or no context.
        clientMaxWindowBits = min(clientBits ?? 15, offer.clientMaxWindowBits)
        clientNoContextTakeover =
            offer.clientNoContextTakeover || seen.contains("client_no_context_takeover")
    }
}

/// A decimal number from 8 to 15 without leading zeros (RFC 7692 §7.1.2).
private func windowBits(_ parameter: ExtensionHeader.Parameter) throws(RealtimeError) -> Int {
    for bits in 8...15 where parameter.value == String(bits) { return bits }
    let value = parameter.value.map { "the value " + $0.quoted() } ?? "no value"
    throw refused("sent \(parameter.name) with \(value); 8 to 15 is expected")
}

private func refused(_ fault: String) -> RealtimeError {
    RealtimeError(.handshake, "The server \(fault) (Sec-WebSocket-Extensions)")
}
