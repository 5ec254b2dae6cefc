import Realtime

/// What the command did when a Meteor server refused it, or could not be asked.
struct DDPFailure: Error {
    enum Action {
        case login, resume
        case call(String)
        case sub(String)
        /// A subscription whose initial documents were there.
        case subscribed(String)
    }

    let action: Action
    /// Host and port of the server.
    let server: String
    let error: DDPError

    var message: String {
        switch action {
        case .login: "Logging in at \(server) failed: \(cause)."
        case .resume: "Logging in at \(server) with the token failed: \(cause)."
        case .call(let name): "Calling \(name) at \(server) failed: \(cause)."
        case .sub(let name): "Subscribing to \(name) at \(server) failed: \(cause)."
        case .subscribed(let name):
            "The subscription to \(name) at \(server) has ended: \(cause)."
        }
    }

    private var cause: String {
        guard let details = error.details, details != .null else { return "\(error)" }
        return "\(error), details: \(details.text)"
    }

    /// What the user can do about it.
    var advice: String? {
        switch error.kind {
        case .timeout: "See --max-time."
        case .invocationFailed: "Without --no-retry it is repeated on the next connection."
        case .disconnected: "Without --no-reconnect the command connects again."
        case .stub, .closed: nil
        case .server: adviceForCode
        }
    }

    private var adviceForCode: String? {
        switch (error.code, action) {
        case ("too-many-requests", _): "Wait a while and try again."
        case ("no-2fa-code", _), ("invalid-2fa-code", _): "See --code."
        case (_, .resume): "It is no longer valid. See --login."
        case ("403", .login): "Check the user and the password, or the token."
        case ("404", .call): "Check the name of the method."
        case ("404", .sub): "Check the name of the publication."
        case ("400", _): "Check the arguments: 5 is a number, '\"5\"' a text."
        case ("401", _), ("403", _): "You may have to log in; see --login."
        case ("500", _): "The server's log has the cause."
        default: nil
        }
    }

    var object: JSONLine {
        JSONLine("error").with("code", error.code).with("message", error.reason)
            .with("details", error.details).with("advice", advice)
    }
}

/// Why there was never a connection.
struct DDPUnreachable: Error {
    let error: RealtimeError
    let address: DDPAddress

    /// What the user can do about it.
    var advice: String? {
        let isAnotherServer =
            switch error.code {
            case .handshake, .protocolViolation, .connectionLost: true
            case .timeout: error.message.contains("as a Meteor server")
            case .httpStatus where !error.isFromProxy:
                // 501 is what simple servers answer to a method that they do not know.
                error.response.map { $0.status == 501 || $0.status != 401 && $0.status < 500 }
                    ?? false
            default: false
            }
        guard isAnotherServer else { return error.advice }
        return "Is it a Meteor server, and is the path right? Its WebSocket is expected at"
            + " \(address.webSocket), and SockJS beside it."
    }
}

/// A URL of a Meteor server, for messages: without a user.
struct DDPAddress {
    /// Host and port.
    let server: String
    /// Where the server answers WebSockets.
    let webSocket: String

    init(_ url: String) {
        let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
        let target = url[start...].prefix { $0 != "?" && $0 != "#" }
        let authority = target.prefix { $0 != "/" }
        var path = target[authority.endIndex...]
        while path.last == "/" { path.removeLast() }
        server = String(authority.split(separator: "@").last ?? authority)
        webSocket = "\(server)\(path)\(path.hasSuffix("/websocket") ? "" : "/websocket")"
    }
}
