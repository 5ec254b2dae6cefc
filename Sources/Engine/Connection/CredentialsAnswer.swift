/// The caller's answer when the server requires credentials.
package enum CredentialsAnswer: Int32, Sendable {
    /// The caller has none: the object fails.
    case none = 0
    /// The headers contain them now: the request is repeated.
    case ready = 1
    /// They are being fetched: the object waits for `completeCredentials`.
    case later = 2
}
