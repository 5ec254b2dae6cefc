/// What the caller says when the server wants credentials.
package enum CredentialsAnswer: Int32, Sendable {
    /// There are none: the object fails.
    case none = 0
    /// They are in the headers now: the request goes out once more.
    case ready = 1
    /// They are being fetched: the object waits for `credentialsAreReady`.
    case later = 2
}
