public import CShims
import Engine
import Session
import Wire

// Chapter: pusher authorization. Signing subscriptions and sign-ins by the program's own means.

/// A request for an authorization, which the program answers once, at any time and on any thread.
/// Free it after the answer. Freed without one, the authorization fails. Since 0.1.
public typealias rt_pusher_authorization = OpaquePointer

/// Asks for an authorization. The program owns `authorization`, answers it now or later, and frees
/// it with `rt_pusher_authorization_free`. An answer that comes too late, because the connection
/// was lost, is ignored: the new connection has asked again. Since 0.1.
public typealias rt_pusher_authorize_fn =
    @convention(c) (
        _ request: UnsafePointer<rt_pusher_auth_request>?,
        _ authorization: rt_pusher_authorization?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Changes the request to the authorization endpoint before it is sent: for example
/// `rt_rest_request_set_header` sets a header, and `rt_rest_request_add_form_parameter` adds a
/// parameter to the form. `http` may be changed by `rt_rest_request_` functions until the callback
/// returns; the callback must not free it, and need not send it. Since 0.1.
/// - Returns: true to send it; false fails the authorization.
public typealias rt_pusher_prepare_fn =
    @convention(c) (
        _ request: UnsafePointer<rt_pusher_auth_request>?, _ http: rt_rest_request?,
        _ user: UnsafeMutableRawPointer?
    ) -> Bool

/// Names the own user for presence channels and sign-ins that this process signs. Both texts are
/// copied when the callback returns. Since 0.1.
/// - Parameter out_user_id: receives the user's id. An empty one fails the authorization.
/// - Parameter out_user_info: receives what other members see of the user, as JSON text; may stay
///   NULL. With an empty id: why it failed, for the message of the error.
/// - Returns: false to use the socket id as the user's id.
public typealias rt_pusher_user_data_fn =
    @convention(c) (
        _ out_user_id: UnsafeMutablePointer<UnsafePointer<CChar>?>?,
        _ out_user_info: UnsafeMutablePointer<UnsafePointer<CChar>?>?,
        _ user: UnsafeMutableRawPointer?
    ) -> Bool

/// - Callbacks: pusher, pusherHandlers
extension PusherHandlers {
    /// Sets the callback that authorizes subscriptions and sign-ins instead of the endpoints and
    /// the secret. Since 0.1.
    mutating func onAuthorize(_ box: CallbackBox<rt_pusher_authorize_fn>) {
        authorize = box.function.map { function in
            { authorization in
                authorization.request.show {
                    function($0, PusherAuthorization.export(authorization), box.user)
                }
            }
        }
    }

    /// Sets the callback that changes requests to the authorization endpoints. Since 0.1.
    mutating func onPrepareAuthorization(_ box: CallbackBox<rt_pusher_prepare_fn>) {
        prepareAuthorization = box.function.map { function in
            { request, http in
                withExtendedLifetime(http) {
                    request.show {
                        function(
                            $0, OpaquePointer(Unmanaged.passUnretained(http).toOpaque()), box.user)
                    }
                }
            }
        }
    }

    /// Sets the callback that names the own user, for presence channels that are signed with
    /// `rt_pusher_set_secret`. Since 0.1.
    mutating func onUserData(_ box: CallbackBox<rt_pusher_user_data_fn>) {
        userData = box.function.map { function in { userDataAnswer(function, box.user) } }
    }
}

/// Answers an authorization of one channel, or of a sign-in. For several channels see
/// `rt_pusher_authorization_answer_channel`. Any thread. Since 0.1.
/// - Parameter auth: the signature, `KEY:HEX`, copied.
/// - Parameter data: the channel data, or the user data, that was signed; sent unchanged. NULL for
///   none.
/// - Parameter shared_secret: the key of an encrypted channel, base64 of 32 bytes; NULL for none.
/// - Returns: RT_OK, also for an answer that comes too late; RT_ERROR_STATE if it is already
///   answered; RT_ERROR_INVALID_ARGUMENT, also for a key that is not valid; RT_ERROR_INVALID_UTF8.
@_cdecl("rt_pusher_authorization_answer")
public func rt_pusher_authorization_answer(
    _ authorization: rt_pusher_authorization?, _ auth: UnsafePointer<CChar>?,
    _ data: UnsafePointer<CChar>?, _ shared_secret: UnsafePointer<CChar>?
) -> rt_status {
    authorizationCall(authorization) { (authorization) throws(RealtimeError) in
        if authorization.isUser {
            let answer = PusherUserAnswer(
                auth: try text(auth, "auth"), userData: try text(data, "data"))
            return try once(authorization.answer(answer))
        }
        try once(authorization.answer(authorizationAnswer(auth, data, shared_secret)))
    }
}

/// Answers one channel of an authorization of several. Any thread. Since 0.1.
/// - Parameter channel: a name of the request.
/// - Parameter auth: and the following, as in `rt_pusher_authorization_answer`.
/// - Returns: as `rt_pusher_authorization_answer`; RT_ERROR_NOT_FOUND for a channel that is not in
///   the request.
@_cdecl("rt_pusher_authorization_answer_channel")
public func rt_pusher_authorization_answer_channel(
    _ authorization: rt_pusher_authorization?, _ channel: UnsafePointer<CChar>?,
    _ auth: UnsafePointer<CChar>?, _ channel_data: UnsafePointer<CChar>?,
    _ shared_secret: UnsafePointer<CChar>?
) -> rt_status {
    authorizationCall(authorization) { (authorization) throws(RealtimeError) in
        let answer = try authorizationAnswer(auth, channel_data, shared_secret)
        try once(authorization.answer(.success(answer), for: text(channel, "channel")))
    }
}

/// Answers with the JSON text of an authorization server, as the endpoint would return it; for
/// several channels in the batched form. Any thread. Since 0.1.
/// - Parameter json: `length` bytes, copied.
/// - Returns: RT_OK, also for text that is not a valid answer: the authorization then fails;
///   RT_ERROR_STATE if it is already answered; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_pusher_authorization_answer_json")
public func rt_pusher_authorization_answer_json(
    _ authorization: rt_pusher_authorization?, _ json: UnsafePointer<CChar>?, _ length: Int
) -> rt_status {
    authorizationCall(authorization) { (authorization) throws(RealtimeError) in
        try once(authorization.answer(json: bytes(json, length, "json")))
    }
}

/// Makes the request that the client would send to the authorization endpoint, for a program that
/// needs time to change it, for example to get a token: keep both, change the request by the
/// functions of `rt_rest_request_`, and pass it to `rt_pusher_authorization_send`. Once only, in a
/// callback of the connection, such as the one that passes the authorization. Since 0.1.
/// - Parameter out: receives the request; free it with `rt_rest_request_free`.
/// - Returns: RT_OK; RT_ERROR_STATE if the authorization is already answered or has its request, or
///   on another thread; RT_ERROR_CLOSED if the connection was freed; RT_ERROR_INVALID_ARGUMENT.
@_cdecl("rt_pusher_authorization_get_request")
public func rt_pusher_authorization_get_request(
    _ authorization: rt_pusher_authorization?, _ out: UnsafeMutablePointer<rt_rest_request?>?
) -> rt_status {
    authorizationCall(authorization) { (authorization) throws(RealtimeError) in
        let out = try required(out, "out")
        guard !authorization.hasRequest else {
            throw RealtimeError(.state, "the authorization's request has been made")
        }
        out.pointee = RESTRequestBuilder.export(try authorization.endpointRequest())
    }
}

/// Sends a copy of the request of `rt_pusher_authorization_get_request`; the endpoint's response is
/// the answer. Any thread. Since 0.1.
/// - Parameter request: what that function returned for this authorization.
/// - Returns: RT_OK, also if it comes too late, or if the request has no URL or its body cannot be
///   read again: the authorization then fails; RT_ERROR_STATE if it is already answered;
///   RT_ERROR_INVALID_ARGUMENT, also for another request.
@_cdecl("rt_pusher_authorization_send")
public func rt_pusher_authorization_send(
    _ authorization: rt_pusher_authorization?, _ request: rt_rest_request?
) -> rt_status {
    authorizationCall(authorization) { (authorization) throws(RealtimeError) in
        try once(authorization.send(RESTRequestBuilder.borrow(request)))
    }
}

/// Refuses an authorization: of several channels, all that are not answered. Any thread. Since 0.1.
/// - Parameter message: why, for the callback of `rt_pusher_on_subscription_failed`; may be NULL.
/// - Returns: RT_OK; RT_ERROR_STATE if it is already answered; RT_ERROR_INVALID_ARGUMENT;
///   RT_ERROR_INVALID_UTF8.
@_cdecl("rt_pusher_authorization_fail")
public func rt_pusher_authorization_fail(
    _ authorization: rt_pusher_authorization?, _ message: UnsafePointer<CChar>?
) -> rt_status {
    authorizationCall(authorization) { (authorization) throws(RealtimeError) in
        let message = try textOrNone(message, "message") ?? "the authorization was refused"
        try once(authorization.fail(RealtimeError(.auth, message)))
    }
}

/// Frees an authorization. Without an answer it fails. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_pusher_authorization_free")
public func rt_pusher_authorization_free(_ authorization: rt_pusher_authorization?) {
    PusherAuthorization.release(authorization) { _ in }
}

private func once(_ isAnswered: Bool) throws(RealtimeError) {
    guard isAnswered else {
        throw RealtimeError(.state, "the authorization is already answered")
    }
}
