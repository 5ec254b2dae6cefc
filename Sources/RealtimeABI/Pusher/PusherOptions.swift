import Engine
import Session
import Wire

// Chapter: pusher options. All are set before the first `rt_pusher_subscribe`, `rt_pusher_sign_in`
// or `rt_pusher_start`; later they return RT_ERROR_STATE, except `rt_pusher_set_reconnect_limits`.

/// Sets the server by its host name, for servers other than Pusher's. It replaces a cluster.
/// Default: `ws.pusherapp.com`. Since 0.1.
/// - Parameter host: a name or an address without scheme, port and path; NULL for the default.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for "", and for a name with `://` or `/`;
///   RT_ERROR_INVALID_UTF8; RT_ERROR_STATE.
@_cdecl("rt_pusher_set_host")
public func rt_pusher_set_host(
    _ pusher: rt_pusher?, _ host: UnsafePointer<CChar>?
) -> rt_status {
    pusherOptions(pusher) { (options) throws(RealtimeError) in
        try options.setHost(optionalText(host, "host"))
    }
}

/// Sets the server by the application's cluster: `eu` means `ws-eu.pusher.com`. It replaces a host.
/// Default: none. Since 0.1.
/// - Parameter cluster: NULL for the default.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for "", and for a name with other characters than
///   letters, digits and `-`; RT_ERROR_INVALID_UTF8; RT_ERROR_STATE.
@_cdecl("rt_pusher_set_cluster")
public func rt_pusher_set_cluster(
    _ pusher: rt_pusher?, _ cluster: UnsafePointer<CChar>?
) -> rt_status {
    pusherOptions(pusher) { (options) throws(RealtimeError) in
        try options.setCluster(optionalText(cluster, "cluster"))
    }
}

/// Signs subscriptions and sign-ins in this process with the application's secret. For development
/// only: a program that is given away must not contain the secret. The library never logs it, and
/// wipes its copy when the connection is freed. Default: NULL. Since 0.1.
/// - Parameter secret: the secret as text, copied; "" is a secret, too. NULL for none.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle; RT_ERROR_STATE.
@_cdecl("rt_pusher_set_secret")
public func rt_pusher_set_secret(
    _ pusher: rt_pusher?, _ secret: UnsafePointer<CChar>?
) -> rt_status {
    pusherOptions(pusher) { (options) throws(RealtimeError) in
        options.setSecret(secret.map { SecretBytes(cText($0)) })
    }
}

/// Sets the master key from which the keys of encrypted channels are derived, when this process
/// signs (`rt_pusher_set_secret`). For development only. Default: NULL. Since 0.1.
/// - Parameter key: 32 bytes, copied; NULL for none.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for another length; RT_ERROR_STATE.
@_cdecl("rt_pusher_set_encryption_master_key")
public func rt_pusher_set_encryption_master_key(
    _ pusher: rt_pusher?, _ key: UnsafePointer<UInt8>?, _ length: Int
) -> rt_status {
    pusherOptions(pusher) { (options) throws(RealtimeError) in
        let given = try bytes(key, length, "key")
        try options.setMasterKey(key == nil ? nil : SecretBytes(given))
    }
}

/// Sets the URL that authorizes subscriptions. The library posts a form with `socket_id` and
/// `channel_name`, and expects 200 or 201 with a JSON object: `auth`, for presence channels also
/// `channel_data`, for encrypted ones `shared_secret`. The callback of `rt_pusher_on_authorize`
/// replaces it. Default: NULL (public channels only). Since 0.1.
/// - Parameter url: an absolute URL; NULL for none.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_UTF8;
///   RT_ERROR_STATE.
@_cdecl("rt_pusher_set_auth_endpoint")
public func rt_pusher_set_auth_endpoint(
    _ pusher: rt_pusher?, _ url: UnsafePointer<CChar>?
) -> rt_status {
    pusherOptions(pusher) { (options) throws(RealtimeError) in
        try options.setAuthEndpoint(optionalText(url, "url"))
    }
}

/// Sets the URL that authorizes the sign-in of a user (`rt_pusher_sign_in`). The library posts a
/// form with `socket_id`, and expects 200 or 201 with a JSON object: `auth` and `user_data`.
/// Default: NULL. Since 0.1.
/// - Parameter url: an absolute URL; NULL for none.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_UTF8;
///   RT_ERROR_STATE.
@_cdecl("rt_pusher_set_user_auth_endpoint")
public func rt_pusher_set_user_auth_endpoint(
    _ pusher: rt_pusher?, _ url: UnsafePointer<CChar>?
) -> rt_status {
    pusherOptions(pusher) { (options) throws(RealtimeError) in
        try options.setUserAuthEndpoint(optionalText(url, "url"))
    }
}

/// Sets a header of the authorization requests, replacing all of that name; NULL removes them. For
/// headers that change, see `rt_pusher_on_prepare_authorization`. Default: none. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_HEADER; RT_ERROR_INVALID_ARGUMENT; RT_ERROR_STATE.
@_cdecl("rt_pusher_set_auth_header")
public func rt_pusher_set_auth_header(
    _ pusher: rt_pusher?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    pusherOptions(pusher) { (options) throws(RealtimeError) in
        try options.setAuthHeader(text(name, "name"), optionalText(value, "value"))
    }
}

/// Sets an additional parameter in the form of the authorization requests; NULL removes it. For
/// parameters that change, see `rt_pusher_on_prepare_authorization`. Default: none. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for an empty name, and for one that the library sets
///   itself (`socket_id`, `channel_name`); RT_ERROR_INVALID_UTF8; RT_ERROR_STATE.
@_cdecl("rt_pusher_set_auth_parameter")
public func rt_pusher_set_auth_parameter(
    _ pusher: rt_pusher?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> rt_status {
    pusherOptions(pusher) { (options) throws(RealtimeError) in
        try options.setAuthParameter(text(name, "name"), optionalText(value, "value"))
    }
}

/// Sets the URL of the service for push notifications (`rt_pusher_push_register`). Default:
/// `https://nativepushclient-cluster1.pusher.com/client_api/v1`. Since 0.1.
/// - Parameter url: an absolute URL, to which paths are appended; NULL for the default.
/// - Returns: RT_OK; RT_ERROR_INVALID_URL; RT_ERROR_UNSUPPORTED_SCHEME; RT_ERROR_INVALID_UTF8;
///   RT_ERROR_STATE.
@_cdecl("rt_pusher_set_push_url")
public func rt_pusher_set_push_url(
    _ pusher: rt_pusher?, _ url: UnsafePointer<CChar>?
) -> rt_status {
    pusherOptions(pusher) { (options) throws(RealtimeError) in
        try options.setPushURL(optionalText(url, "url"))
    }
}

/// Sets how long a lost connection is tried. The delay before attempt n is n² seconds: 0, 1, 4, 9
/// and so on. Any thread, at any time; it applies from the next failure on. Since 0.1.
/// - Parameter max_attempts: how many reconnects in a row may fail before the connection ends; the
///   first attempt does not count. 0 means no reconnects, -1 no limit. Default: -1.
/// - Parameter max_gap_ms: the longest delay between attempts; 0 means no limit. Default: 120,000.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT below -1, or for a negative time.
@_cdecl("rt_pusher_set_reconnect_limits")
public func rt_pusher_set_reconnect_limits(
    _ pusher: rt_pusher?, _ max_attempts: Int32, _ max_gap_ms: Int64
) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        let most = try number(max_attempts, "max_attempts", in: -1...Int(Int32.max))
        let gap = try milliseconds(max_gap_ms, "max_gap_ms")
        try connection.setReconnectLimits(
            max: most < 0 ? nil : most, gap: gap == .zero ? nil : gap)
    }
}

/// Changes a connection's options.
func pusherOptions(
    _ pusher: rt_pusher?, once: Bool = false,
    _ body: (inout PusherConfiguration) throws(RealtimeError) -> Void
) -> rt_status {
    pusherCall(pusher) { (connection) throws(RealtimeError) in
        try connection.configure(once: once, body)
    }
}
