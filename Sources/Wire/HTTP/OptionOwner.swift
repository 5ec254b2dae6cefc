/// The object whose options an error message names. Objects contain others, so the messages of a
/// WebSocket name options of the Pusher connection that it belongs to.
package enum OptionOwner: String, Sendable, Equatable, CaseIterable {
    case websocket
    case eventsource
    case eventstreamParser = "eventstream_parser"
    case longpoll
    case rest
    case spreadbot
    case pusher
    case ddp
    case backoff

    /// An option that limits something, by its name in C. Tests/Tidy compares the table with
    /// docs/options.md.
    package enum Limit: String, Sendable, CaseIterable {
        case allowInsecureRedirects = "allow_insecure_redirects"
        case answerTimeout = "answer_timeout_ms"
        case attemptTimeout = "attempt_timeout_ms"
        case authTimeout = "auth_timeout_ms"
        case clientEventQueue = "client_event_queue"
        case connectTimeout = "connect_timeout_ms"
        case deadline = "deadline_ms"
        case heartbeatTimeout = "heartbeat_timeout_ms"
        case idleTimeout = "idle_timeout_ms"
        case maxAttempts = "max_attempts"
        case maxBodyBytes = "max_body_bytes"
        case maxCallRepeats = "max_call_repeats"
        case maxDocumentBytes = "max_document_bytes"
        case maxEventBytes = "max_event_bytes"
        case maxHeaderBytes = "max_header_bytes"
        case maxInflateRatio = "max_inflate_ratio"
        case maxLineBytes = "max_line_bytes"
        case maxMessageBytes = "max_message_bytes"
        case maxNameBytes = "max_name_bytes"
        case maxReconnects = "max_reconnects"
        case maxRedirects = "max_redirects"
        case maxUnsentBytes = "max_unsent_bytes"
        case offlineQueue = "offline_queue"
        case openTimeout = "open_timeout_ms"
        case pongTimeout = "pong_timeout_ms"
        case queueCapacity = "queue_capacity"
        case queueTime = "queue_ttl_ms"
        case reconnectLimits = "reconnect_limits"
        case redirectOrigins = "redirect_origins"
        case responseTimeout = "response_timeout_ms"
        case retryUnsafe = "retry_unsafe"
        case sendLimit = "send_limit_bytes"
    }

    package func has(_ limit: Limit) -> Bool {
        switch limit {
        case .allowInsecureRedirects, .maxRedirects, .redirectOrigins:
            self != .backoff && self != .eventstreamParser
        case .connectTimeout:
            self != .backoff && self != .eventstreamParser && self != .websocket
        case .maxHeaderBytes, .maxInflateRatio, .offlineQueue, .openTimeout, .sendLimit:
            self == .websocket
        case .maxMessageBytes:
            self == .websocket || self == .spreadbot || self == .pusher || self == .ddp
        case .maxEventBytes, .maxLineBytes, .maxNameBytes:
            self == .eventsource || self == .eventstreamParser
        case .idleTimeout: self == .eventsource || self == .websocket
        case .maxBodyBytes: self == .longpoll || self == .rest
        case .maxReconnects: self == .eventsource || self == .spreadbot
        case .retryUnsafe: self == .eventsource || self == .rest
        case .pongTimeout: self == .pusher || self == .websocket
        case .queueCapacity: self == .rest || self == .spreadbot
        case .attemptTimeout, .deadline, .queueTime: self == .rest
        case .authTimeout, .clientEventQueue, .reconnectLimits: self == .pusher
        case .answerTimeout: self == .spreadbot
        case .maxAttempts: self == .backoff
        case .heartbeatTimeout, .maxCallRepeats, .maxDocumentBytes, .maxUnsentBytes:
            self == .ddp
        case .responseTimeout: self == .eventsource
        }
    }

    /// The option's name after a space, in parentheses; empty if the object does not have it.
    /// - Parameter other: named if the object does not have the first option.
    package func mention(_ limit: Limit, or other: Limit? = nil) -> String {
        if has(limit) { return " (\(name(of: limit)))" }
        guard let other, has(other) else { return "" }
        return " (\(name(of: other)))"
    }

    #if hasFeature(Embedded) || REALTIME_C_NAMES
        /// C's function, which Python replaces by its keyword.
        private func name(of limit: Limit) -> String {
            if limit == .redirectOrigins { return "rt_\(rawValue)_add_redirect_origin" }
            return "rt_\(rawValue)_set_\(limit.rawValue)"
        }
    #else
        package func name(of limit: Limit) -> String {
            switch limit {
            case .queueTime: return "queueTime"
            case .reconnectLimits: return "reconnectAttemptsMax"
            default: break
            }
            var words = limit.rawValue.split(separator: "_")[...]
            if words.last == "ms" { words = words.dropLast() }
            return words.dropFirst().reduce(String(words.first ?? "")) { name, word in
                name + word.prefix(1).uppercased() + word.dropFirst()
            }
        }
    #endif
}
