package import CShims
package import Session
package import Wire

/// The handlers of a Pusher connection. They are called on its loop's thread, one at a time.
///
/// Unchecked because handlers may be set on any thread and are called on the loop's. Callers of the
/// C interface must ensure that theirs allow that; those of Swift are Sendable.
package struct PusherHandlers: EndpointHandlers, @unchecked Sendable {
    package var state: ((PusherStateChange) -> Void)?
    /// The server reported an error; the connection continues.
    package var error: ((PusherErrorMessage) -> Void)?
    package var subscribed: ((PusherChannelHandle) -> Void)?
    package var subscriptionFailed: ((PusherChannelHandle, PusherSubscriptionFailure) -> Void)?
    package var memberAdded: ((PusherChannelHandle, PusherMember) -> Void)?
    package var memberRemoved: ((PusherChannelHandle, PusherMember) -> Void)?
    package var subscriptionCount: ((PusherChannelHandle, Int) -> Void)?
    /// An event could not be decrypted, and was dropped.
    package var decryptionFailed:
        ((PusherChannelHandle, _ event: String, _ data: [UInt8]?) -> Void)?
    /// A client event was not sent.
    package var triggerFailed: ((PusherChannelHandle, _ event: String, RealtimeError) -> Void)?
    package var signedIn: ((_ userID: String, _ userData: [UInt8]) -> Void)?
    package var signInFailed: ((PusherSubscriptionFailure) -> Void)?
    package var watchlist: ((PusherWatchlistEvent) -> Void)?
    /// A line for each frame and step, without secrets.
    package var debug: ((String) -> Void)?
    /// All events of a turn, besides the bound handlers: a base pointer, and offsets from it.
    package var events: ((UnsafeRawPointer, UnsafeBufferPointer<rt_pusher_record>) -> Void)?
    /// Authorizes channels or the user. The answer may come later.
    package var authorize: ((PusherAuthorization) -> Void)?
    /// Whether `authorize` is asked for channels, and for the user.
    package var authorizesChannels = true
    package var authorizesUser = true
    /// Changes a request for authorization before it is sent; false, or an error, if there can be
    /// none.
    package var prepareAuthorization:
        ((PusherAuthorizationRequest, RESTRequestBuilder) throws(RealtimeError) -> Bool)?
    /// The user's id and other data, for authorization by the secret; nil for the socket id. An
    /// error, or an empty id, fails the authorization.
    package var userData: (() -> Result<PusherMember?, RealtimeError>)?

    package init() {}
}
