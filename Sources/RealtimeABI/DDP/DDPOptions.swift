import Engine
import Session
import Wire

// Chapter: ddp options. All are set before the client is used: before calls, subscriptions and
// reads of documents, and before `rt_ddp_start`. Later they return RT_ERROR_STATE, except
// `rt_ddp_on_load_token`.

/// Returns the token of an earlier login, as `RT_DDP_ACCOUNT_STORE` gave it; NULL for none. The
/// text must stay valid until the next call of this function, or until `destroy`. Since 0.1.
public typealias rt_ddp_load_token_fn =
    @convention(c) (_ user: UnsafeMutableRawPointer?) -> UnsafePointer<CChar>?

/// - Callbacks: ddp, ddpHandlers
extension DDPHandlers {
    /// Sets the callback that loads the token of an earlier login, for programs that keep it
    /// themselves (`RT_DDP_ACCOUNT_STORE`) and not in a file (`rt_ddp_set_token_file`). It is
    /// called at the first use of the client, on the thread of that use, and before each
    /// connection. It must not use the client. A text that is not a token counts as none. Since
    /// 0.1.
    mutating func onLoadToken(_ box: CallbackBox<rt_ddp_load_token_fn>) {
        loadToken = box.function.map { function in
            {
                guard let token = function(box.user) else { return nil }
                return DDPLoginToken(text: String(cString: token))
            }
        }
    }
}

/// Changes a client's options.
func ddpOptions(
    _ ddp: rt_ddp?, once: Bool = false,
    _ body: (inout DDPClientConfiguration) throws(RealtimeError) -> Void
) -> rt_status {
    ddpCall(ddp) { (client) throws(RealtimeError) in try client.configure(once: once, body) }
}
