/// How a connection gets permission to subscribe to private, encrypted and presence channels.
///
/// The program's objects are called on the main actor and need not be Sendable. One that is not is
/// passed as an expression: it is evaluated on the main actor, at once in main-actor code. An async
/// function as authorizer does not wait until the main thread is free.
public enum AuthMethod: Sendable {
    /// Posts the socket id and the channel name to this URL, as a form.
    case endpoint(authEndpoint: String)
    /// Sends the request that the builder makes; the response has the same form.
    case authRequestBuilder(authRequestBuilder: any PusherAuthRequestBuilder & Sendable)
    /// Signs with the app's secret. For development only: the program contains the secret.
    case inline(secret: String)
    /// Asks the program, which may answer later and on any thread.
    case authorizer(authorizer: any Authorizer & Sendable)
    /// Only public channels can be used.
    case noMethod

    /// Sends the request that the builder makes, an object that is not Sendable.
    @_disfavoredOverload
    public static func authRequestBuilder(
        authRequestBuilder: @autoclosure @escaping @MainActor () -> any PusherAuthRequestBuilder
    ) -> AuthMethod {
        let builder = MainActorRequestBuilder(builder: MainActorValue(authRequestBuilder))
        return .authRequestBuilder(authRequestBuilder: builder)
    }

    /// Asks an object that is not Sendable.
    @_disfavoredOverload
    public static func authorizer(
        authorizer: @autoclosure @escaping @MainActor () -> any Authorizer
    ) -> AuthMethod {
        .authorizer(authorizer: MainActorAuthorizer(authorizer: MainActorValue(authorizer)))
    }

    /// Asks an async function, which runs where its isolation says. An error that it throws fails
    /// the subscription.
    public static func authorizer(
        _ fetch:
            @escaping @Sendable (_ socketID: String, _ channelName: String) async throws ->
            PusherAuth
    ) -> AuthMethod {
        .authorizer(authorizer: PusherAuthFunction(fetch: fetch))
    }
}

/// The permission to subscribe to a channel, as a server signed it.
public struct PusherAuth: Sendable {
    public let auth: String
    /// For presence channels: the JSON text with the user's id that the server signed.
    public let channelData: String?
    /// For encrypted channels: the channel's key in base64.
    public let sharedSecret: String?

    public init(auth: String, channelData: String? = nil, sharedSecret: String? = nil) {
        self.auth = auth
        self.channelData = channelData
        self.sharedSecret = sharedSecret
    }
}

/// Decides about subscriptions in the program.
public protocol Authorizer {
    /// Called on the main actor for each channel that needs permission, again after each reconnect.
    /// - Parameter completionHandler: takes the permission, or nil to refuse. Call it once, at any
    ///   time and on any thread.
    @MainActor func fetchAuthValue(
        socketID: String, channelName: String,
        completionHandler: @escaping @Sendable (PusherAuth?) -> Void)
}

/// Makes the request that asks for permission. `RealtimeFoundation` has the form with `URLRequest`:
/// `AuthRequestBuilderProtocol`.
public protocol PusherAuthRequestBuilder {
    /// Called on the main actor for each channel that needs permission, again after each reconnect.
    /// A body that is a stream is not accepted.
    /// - Returns: a request to an absolute URL; nil fails the subscription.
    @MainActor func authorizationRequest(socketID: String, channelName: String) -> REST.Request?
}

/// An object of the program that is not Sendable.
private struct MainActorAuthorizer: Authorizer, Sendable {
    let authorizer: MainActorValue<any Authorizer>

    func fetchAuthValue(
        socketID: String, channelName: String,
        completionHandler: @escaping @Sendable (PusherAuth?) -> Void
    ) {
        authorizer.value.fetchAuthValue(
            socketID: socketID, channelName: channelName, completionHandler: completionHandler)
    }
}

private struct MainActorRequestBuilder: PusherAuthRequestBuilder, Sendable {
    let builder: MainActorValue<any PusherAuthRequestBuilder>

    func authorizationRequest(socketID: String, channelName: String) -> REST.Request? {
        builder.value.authorizationRequest(socketID: socketID, channelName: channelName)
    }
}

/// An async function as an authorizer. The connection calls it directly, not on the main actor, and
/// keeps the text of its error.
struct PusherAuthFunction: Authorizer {
    let fetch: @Sendable (_ socketID: String, _ channelName: String) async throws -> PusherAuth

    func fetchAuthValue(
        socketID: String, channelName: String,
        completionHandler: @escaping @Sendable (PusherAuth?) -> Void
    ) {
        Task { completionHandler(try? await fetch(socketID, channelName)) }
    }
}

/// How a connection signs its user in. With `AuthMethod.inline`, the secret can do it, too.
public enum PusherUserAuthMethod: Sendable {
    /// Posts the socket id to this URL, as a form.
    case endpoint(authEndpoint: String)
    /// Asks the program. An error that it throws fails the sign-in.
    case authorizer(@Sendable (_ socketID: String) async throws -> PusherUserAuth)
}

/// The permission to sign in, as a server signed it.
public struct PusherUserAuth: Sendable {
    public let auth: String
    /// The JSON text with the user's id that the server signed.
    public let userData: String

    public init(auth: String, userData: String) {
        self.auth = auth
        self.userData = userData
    }
}

// Secrets and permissions are not printed.
extension AuthMethod: CustomStringConvertible, CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
    public var description: String {
        switch self {
        case .endpoint(let url): "endpoint(\(Shown.url(url)))"
        case .authRequestBuilder: "authRequestBuilder"
        case .inline: "inline"
        case .authorizer: "authorizer"
        case .noMethod: "noMethod"
        }
    }
}

extension PusherAuth: CustomStringConvertible, CustomReflectable {
    public var description: String { "(authorization)" }
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension PusherUserAuth: CustomStringConvertible, CustomReflectable {
    public var description: String { "(authorization)" }
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension PusherUserAuthMethod: CustomStringConvertible, CustomReflectable {
    public var description: String {
        switch self {
        case .endpoint(let url): "endpoint(\(Shown.url(url)))"
        case .authorizer: "authorizer"
        }
    }
    public var customMirror: Mirror { Shown.mirror(self) }
}
