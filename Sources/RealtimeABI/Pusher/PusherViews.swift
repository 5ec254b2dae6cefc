import CShims
import Engine
import Session
import Wire

// Fills the views of Pusher connections. Nothing here is exported.

extension PusherConnection: Handle {
    static let name = "pusher"
    var owningLoop: Loop? { loop }
}

extension PusherChannelHandle: Handle {
    static let name = "channel"
    var owningLoop: Loop? { nil }
}

extension PusherAuthorization: Handle {
    static let name = "authorization"
    var owningLoop: Loop? { loop }
}

/// Calls a C function with each event.
func eventHandler(_ box: CallbackBox<rt_pusher_event_fn>) throws(RealtimeError) -> PusherHandler {
    let function = try required(box.function, "fn")
    return { event, channel, _ in
        var view = rt_pusher_event()
        view.struct_bytes = MemoryLayout<rt_pusher_event>.size
        (view.event, view.event_length) = span(event.event)
        (view.channel, view.channel_length) = span(event.channel)
        (view.data, view.data_length) = span(event.data.bytes)
        (view.user_id, view.user_id_length) = span(event.userID)
        (view.message, view.message_length) = span(event.source)
        view.channel_number = channel?.number ?? 0
        view.data_kind = event.data.kind.rawValue
        function(&view, box.user)
    }
}

/// Shows an event whose data could not be decrypted.
func showUndecrypted(
    _ channel: PusherChannelHandle, _ event: String, _ data: [UInt8]?,
    to function: rt_pusher_event_fn, _ user: UnsafeMutableRawPointer?
) {
    var texts = ViewTexts()
    let (event, name) = (texts.add(event), texts.add(channel.channel.text))
    let content = texts.add(data ?? [])
    let none = texts.add("")
    texts.read { text in
        var view = rt_pusher_event(
            struct_bytes: MemoryLayout<rt_pusher_event>.size, event: text(event),
            event_length: event.count, channel: text(name), channel_length: name.count,
            data: text(content), data_length: content.count, user_id: text(none),
            user_id_length: 0, message: text(none), message_length: 0,
            channel_number: channel.number,
            data_kind: (data == nil ? RT_PUSHER_DATA.NONE : .TEXT).rawValue)
        function(&view, user)
    }
}

/// Shows a client event that was dropped.
func showDropped(
    _ channel: PusherChannelHandle, _ event: String, _ error: RealtimeError,
    to function: rt_pusher_trigger_failed_fn, _ user: UnsafeMutableRawPointer?
) {
    var texts = ViewTexts()
    let (event, name) = (texts.add(event), texts.add(channel.channel.text))
    let message = texts.add(error.message)
    texts.read { text in
        var view = rt_pusher_trigger_failure(
            struct_bytes: MemoryLayout<rt_pusher_trigger_failure>.size, channel: text(name),
            channel_number: channel.number, event: text(event), status: error.code.rawValue,
            message: text(message))
        function(&view, user)
    }
}

/// The member of a message with this name, as JSON text within the message.
func property(_ name: String, of message: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    var reader = PusherEnvelopeReader()
    let found = try? reader.read(message) { envelope in envelope.property(name) }
    return found ?? nil
}

extension PusherStateChange {
    /// Calls `function` with a view of this.
    func show(to function: rt_pusher_state_fn, _ user: UnsafeMutableRawPointer?) {
        var texts = ViewTexts()
        let reason = texts.add(closeReason)
        let message = texts.add(error?.message ?? "")
        texts.read { text in
            var view = rt_pusher_state_change(
                struct_bytes: MemoryLayout<rt_pusher_state_change>.size,
                old_state: (isFirst ? ConnectionState.idle : old.common).rawValue,
                new_state: new.common.rawValue,
                status: error?.code.rawValue ?? RT_STATUS.OK.rawValue,
                close_code: Int32(clamping: closeCode ?? 0), close_reason: text(reason),
                close_reason_length: reason.count, message: text(message),
                retry_in_ms: retryIn.map { EventSourceConnection.milliseconds($0) } ?? -1,
                attempts: UInt32(clamping: attempt))
            function(&view, user)
        }
    }
}

extension PusherErrorMessage {
    /// Calls `function` with a view of this.
    func show(to function: rt_pusher_error_fn, _ user: UnsafeMutableRawPointer?) {
        var texts = ViewTexts()
        let (message, channel) = (texts.add(message), texts.add(channel ?? ""))
        texts.read { text in
            var view = rt_pusher_error(
                struct_bytes: MemoryLayout<rt_pusher_error>.size, code: Int32(clamping: code ?? 0),
                has_code: code != nil, message: text(message),
                message_length: message.count, channel: text(channel),
                channel_length: channel.count)
            function(&view, user)
        }
    }
}

/// The contents of an `rt_pusher_subscription`.
struct SubscriptionView {
    let channel: PusherChannelHandle
    var failure: PusherSubscriptionFailure?

    /// Calls `function` with a view of this.
    func show(to function: rt_pusher_subscription_fn, _ user: UnsafeMutableRawPointer?) {
        var texts = ViewTexts()
        let name = texts.add(channel.channel.text)
        let message = texts.add(failure?.error.message ?? "")
        let headers = texts.add(failure?.error.response?.headers ?? [])
        let body = texts.add(failure?.body ?? [])
        texts.read { text in
            var view = rt_pusher_subscription(
                struct_bytes: MemoryLayout<rt_pusher_subscription>.size, channel: text(name),
                channel_number: channel.number,
                status: failure?.error.code.rawValue ?? RT_STATUS.OK.rawValue,
                http_status: Int32(clamping: failure?.status ?? 0), message: text(message),
                headers: text(headers), headers_length: headers.count,
                body: UnsafeRawPointer(text(body)).assumingMemoryBound(to: UInt8.self),
                body_length: body.count, count: Int64(channel.subscriptionCount ?? -1))
            function(&view, user)
        }
    }
}

extension PusherMember {
    /// Calls `function` with a view of this.
    func show(
        of channel: PusherChannelHandle, to function: rt_pusher_member_fn,
        _ user: UnsafeMutableRawPointer?
    ) {
        var texts = ViewTexts()
        let (name, id) = (texts.add(channel.channel.text), texts.add(id))
        let info = texts.add(info ?? [])
        texts.read { text in
            var view = rt_pusher_member(
                struct_bytes: MemoryLayout<rt_pusher_member>.size, channel: text(name),
                channel_number: channel.number, user_id: text(id), user_id_length: id.count,
                user_info: text(info), user_info_length: info.count)
            function(&view, user)
        }
    }
}

/// Shows the signed-in user.
func showUser(
    _ id: String, _ data: [UInt8], to function: rt_pusher_user_fn, _ user: UnsafeMutableRawPointer?
) {
    var texts = ViewTexts()
    let (id, data) = (texts.add(id), texts.add(data))
    texts.read { text in
        var view = rt_pusher_user(
            struct_bytes: MemoryLayout<rt_pusher_user>.size, user_id: text(id),
            user_id_length: id.count, user_data: text(data), user_data_length: data.count)
        function(&view, user)
    }
}

extension PusherSubscriptionFailure {
    var view: FailureView {
        FailureView(error: error, httpStatus: status ?? 0)
    }
}

extension PusherWatchlistEvent {
    /// Calls `function` with a view of this.
    func show(to function: rt_pusher_watchlist_fn, _ user: UnsafeMutableRawPointer?) {
        var texts = ViewTexts()
        let places = userIDs.map { texts.add($0) }
        texts.read { text in
            let ids = places.map { rt_text(text: text($0), text_length: $0.count) }
            ids.withUnsafeBufferPointer { ids in
                var view = rt_pusher_watchlist(
                    struct_bytes: MemoryLayout<rt_pusher_watchlist>.size, online: name == "online",
                    user_ids: ids.baseAddress, user_id_count: ids.count)
                function(&view, user)
            }
        }
    }
}

extension PusherAuthorizationRequest {
    /// Calls `body` with a view of this.
    func show<Result>(_ body: (UnsafePointer<rt_pusher_auth_request>) -> Result) -> Result {
        let names = channels.reduce(into: []) { $0 += Array($1.text.utf8) + [UInt8(ascii: "\n")] }
        var texts = ViewTexts()
        let (socketID, list) = (texts.add(socketID), texts.add(names))
        return texts.read { text in
            var view = rt_pusher_auth_request(
                struct_bytes: MemoryLayout<rt_pusher_auth_request>.size, socket_id: text(socketID),
                socket_id_length: socketID.count, channels: text(list), channels_length: list.count,
                count: channels.count, is_user: channels.isEmpty)
            return body(&view)
        }
    }
}

/// Asks the program for its user. An empty id with a text is a failure.
func userDataAnswer(
    _ function: rt_pusher_user_data_fn, _ user: UnsafeMutableRawPointer?
) -> Result<PusherMember?, RealtimeError> {
    var (id, info): (UnsafePointer<CChar>?, UnsafePointer<CChar>?) = (nil, nil)
    guard function(&id, &info, user), let id else { return .success(nil) }
    if id.pointee == 0, let info {
        return .failure(RealtimeError(.auth, String(cString: info)))
    }
    let text = info.map { Array(String(cString: $0).utf8) }
    return .success(PusherMember(id: String(cString: id), info: text))
}

/// The contents of an `rt_pusher_push_result`.
struct PushView {
    let kind: RT_PUSHER_PUSH
    let name: String
    let error: RealtimeError?

    init(_ kind: RT_PUSHER_PUSH, _ name: String, _ error: RealtimeError? = nil) {
        (self.kind, self.name, self.error) = (kind, name, error)
    }

    init(_ call: PushInterestsSession.Call, _ error: RealtimeError? = nil) {
        switch call {
        case .subscribe(let name): self.init(.SUBSCRIBE, name, error)
        case .unsubscribe(let name): self.init(.UNSUBSCRIBE, name, error)
        case .setSubscriptions(let names):
            self.init(.SET_SUBSCRIPTIONS, names.reduce("") { $0 + $1 + "\n" }, error)
        }
    }

    /// Calls `function` with a view of this.
    func show(to function: rt_pusher_push_fn, _ user: UnsafeMutableRawPointer?) {
        var texts = ViewTexts()
        let (name, message) = (texts.add(name), texts.add(error?.message ?? ""))
        let body = texts.add(error?.response?.body ?? [])
        texts.read { text in
            var view = rt_pusher_push_result(
                struct_bytes: MemoryLayout<rt_pusher_push_result>.size, kind: kind.rawValue,
                status: error?.code.rawValue ?? RT_STATUS.OK.rawValue,
                http_status: Int32(clamping: error?.response?.status ?? 0), name: text(name),
                name_length: name.count, message: text(message),
                body: UnsafeRawPointer(text(body)).assumingMemoryBound(to: UInt8.self),
                body_length: body.count)
            function(&view, user)
        }
    }
}

/// A text of an event, which is never NULL.
private func span(_ bytes: UnsafeRawBufferPointer?) -> (UnsafePointer<CChar>?, Int) {
    (characters(bytes ?? UnsafeRawBufferPointer(start: nil, count: 0)), bytes?.count ?? 0)
}

/// The signature and its data as the program gave them.
func authorizationAnswer(
    _ auth: UnsafePointer<CChar>?, _ data: UnsafePointer<CChar>?,
    _ shared_secret: UnsafePointer<CChar>?
) throws(RealtimeError) -> PusherAuthorizationAnswer {
    var secret: SharedSecret?
    if let shared_secret {
        secret = SharedSecret(base64: cText(shared_secret))
        guard secret != nil else {
            throw RealtimeError(
                .invalidArgument, "shared_secret is not the base64 form of 32 bytes")
        }
    }
    return PusherAuthorizationAnswer(
        auth: try text(auth, "auth"), channelData: try optionalText(data, "data"),
        sharedSecret: secret)
}

/// A secret in the caller's memory, so that the library makes no copy that it does not wipe.
func cText(_ text: UnsafePointer<CChar>) -> UnsafeRawBufferPointer {
    var count = 0
    while text[count] != 0 { count += 1 }
    return UnsafeRawBufferPointer(start: text, count: count)
}

func authorizationCall(
    _ authorization: rt_pusher_authorization?,
    _ body: (PusherAuthorization) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in
        try PusherAuthorization.borrowing(authorization) { (authorization) throws(RealtimeError) in
            try authorization.loop.checkNotForked()
            try body(authorization)
        }
    }
}
