/// The client's side of the opening handshake (RFC 6455 §4.1): it writes the request and checks the
/// response.
package struct ClientHandshake: Sendable {
    package struct Outcome: Equatable, Sendable {
        /// The subprotocol that the server chose; "" if none.
        package var subprotocol: String
        /// The server's Sec-WebSocket-Extensions, unchanged; "" if none.
        package var extensions: String
        package var deflate: DeflateParameters?
    }

    /// The User-Agent if the caller sets none.
    package static let userAgent = "librealtime/\(LibraryVersion.text)"

    private let url: HTTPURL
    private let key: String
    private let subprotocols: [String]
    private let fields: [HeaderField]
    private let deflate: DeflateOffer?

    /// - Parameters:
    ///   - nonce: 16 random bytes, fresh for each connection.
    ///   - subprotocols: each passed `validate(subprotocol:)`, without duplicates.
    ///   - fields: each passed `validate(fieldName:value:)`.
    package init(
        url: HTTPURL, nonce: [UInt8], subprotocols: [String], fields: [HeaderField],
        deflate: DeflateOffer?
    ) {
        precondition(nonce.count == 16, "RFC 6455 §4.1 requires a nonce of 16 bytes")
        self.url = url
        self.key = base64(nonce)
        self.subprotocols = subprotocols
        self.fields = fields
        self.deflate = deflate
    }

    /// The bytes of the request.
    package var request: [UInt8] {
        var text = "GET \(url.target) HTTP/1.1\r\n"
        func add(_ name: String, _ value: String) { text += "\(name): \(value)\r\n" }
        func isSet(_ name: String) -> Bool {
            fields.contains { $0.name.equalsIgnoringASCIICase(name) }
        }
        let host = fields.first { $0.name.equalsIgnoringASCIICase("Host") }
        // First, as RFC 9110 §7.2 recommends.
        add("Host", host?.value ?? url.hostHeader)
        add("Upgrade", "websocket")
        add("Connection", "Upgrade")
        add("Sec-WebSocket-Key", key)
        add("Sec-WebSocket-Version", "13")
        if !subprotocols.isEmpty {
            add("Sec-WebSocket-Protocol", subprotocols.joined(separator: ", "))
        }
        if let deflate { add("Sec-WebSocket-Extensions", deflate.headerValue) }
        if let credentials = url.basicAuthorization, !isSet("Authorization") {
            add("Authorization", credentials)
        }
        if !isSet("User-Agent") { add("User-Agent", Self.userAgent) }
        for field in fields where field != host { add(field.name, field.value) }
        return Array((text + "\r\n").utf8)
    }

    /// Checks the server's response against every rule of RFC 6455 §4.1 and RFC 7692 §7.1.
    /// - Throws: `.httpStatus` if the status is not 101, `.handshake` if the response breaks a
    ///   rule.
    package func verify(_ head: ResponseHead) throws(RealtimeError) -> Outcome {
        guard head.status == 101 else {
            throw ClientHandshake.refusal(by: url, HTTPResponse(head, body: []))
        }
        guard head.minorVersion >= 1 else {
            throw failure("answered with HTTP/1.0, which does not support Upgrade")
        }
        guard head.hasToken("websocket", in: "Upgrade") else {
            throw failure("answered 101 without \"Upgrade: websocket\"")
        }
        guard head.hasToken("upgrade", in: "Connection") else {
            throw failure("answered 101 without \"Connection: Upgrade\"")
        }
        try verifyAccept(head.values("Sec-WebSocket-Accept"))
        let extensions = head.values("Sec-WebSocket-Extensions")
        return Outcome(
            subprotocol: try chosenSubprotocol(head.values("Sec-WebSocket-Protocol")),
            extensions: extensions.joined(separator: ", "),
            deflate: try DeflateParameters.agreed(answer: extensions, offer: deflate))
    }

    private func verifyAccept(_ values: [String]) throws(RealtimeError) {
        let guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        guard let digest = sha1(Array((key + guid).utf8)) else {
            throw RealtimeError(.system, "libcrypto could not make the SHA-1 of the handshake")
        }
        guard let value = values.first else {
            throw failure("answered 101 without Sec-WebSocket-Accept")
        }
        guard values.count == 1, value == base64(digest) else {
            throw failure("answered with a Sec-WebSocket-Accept that does not match the key")
        }
    }

    private func chosenSubprotocol(_ values: [String]) throws(RealtimeError) -> String {
        // Nchan responds to an unknown offer with an empty value, which means that none was chosen.
        let values = values.filter { !$0.isEmpty }
        guard let value = values.first else { return "" }
        guard values.count == 1 else { throw failure("chose more than one subprotocol") }
        guard subprotocols.contains(value) else {
            throw failure("chose the subprotocol \(value.quoted()), which was not offered")
        }
        return value
    }

    /// The error for a response other than 101.
    package static func refusal(
        by url: HTTPURL, _ response: HTTPResponse
    ) -> RealtimeError {
        var answer = String(response.status)
        if !response.reason.isEmpty { answer += " " + response.reason.quoted() }
        var message = "\(url.displayName) answered the WebSocket handshake with \(answer)"
        if (300...399).contains(response.status), let location = response.header("Location") {
            message += "; it is not followed to \(HTTPURL.redacted(location))"
        }
        return RealtimeError(.httpStatus, message, response: response)
    }

    private func failure(_ fault: String) -> RealtimeError {
        RealtimeError(.handshake, "\(url.displayName) \(fault)")
    }
}

extension ClientHandshake {
    /// Checks a caller's header.
    /// - Throws: `.invalidHeader`, naming the header and never its value.
    package static func validate(fieldName name: String, value: String) throws(RealtimeError) {
        try HeaderField.validate(name: name, value: value)
        let own = "Sec-WebSocket-"
        if name.utf8.count >= own.utf8.count,
            name.prefix(own.utf8.count).equalsIgnoringASCIICase(own)
        {
            throw RealtimeError(
                .invalidHeader, "The header \(name.quoted()) is set by the handshake itself")
        }
    }

    /// Checks a subprotocol to offer.
    /// - Throws: `.invalidSubprotocol` if it is not a token (RFC 6455 §4.1).
    package static func validate(subprotocol name: String) throws(RealtimeError) {
        guard name.utf8.isToken else {
            throw RealtimeError(
                .invalidSubprotocol,
                "The subprotocol \(name.quoted()) is not a token (RFC 6455 §4.1)")
        }
    }
}
