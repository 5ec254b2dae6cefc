package import Wire

/// The ways to a Meteor server.
package enum DDPTransport: Sendable, Equatable {
    case webSocket
    /// SockJS by polling, for networks that block WebSockets.
    case sockJS
}

/// Which transport the next attempt uses.
///
/// - WebSocket is preferred, and SockJS is the fallback. A proxy that blocks WebSockets refuses the
///   handshake, lets it wait, or ends the connection before the server has answered `connect`. So
///   an attempt that ends before `connected` speaks against its transport, unless the cause
///   concerns both: the name cannot be resolved, the server cannot be reached, or TLS fails.
/// - Where WebSocket has never connected, one such attempt suffices. Where it has, the server is
///   more likely to restart, so it takes `patience` attempts in a row.
/// - An attempt by SockJS that ends before `connected` is followed by one with WebSocket.
/// - A connection by SockJS is kept as long as it lasts. When it ends, SockJS is used again, until
///   WebSocket was last tried `pause` ago.
/// - When the network changes, all of this is forgotten.
package struct DDPTransportChoice: Sendable, Equatable {
    /// How many attempts with WebSocket in a row must fail where it has connected before.
    package static let patience = 3
    /// How long WebSocket is not tried again where SockJS works.
    package static let pause = Duration.seconds(300)

    /// Whether SockJS may be used.
    private let mayFallBack: Bool
    private var current = DDPTransport.webSocket
    private var webSocketHasWorked = false
    private var failures = 0
    private var webSocketFailed = Instant(nanoseconds: 0)
    /// The last connection by SockJS was confirmed by the server.
    private var sockJSWorks = false

    package init(mayFallBack: Bool) { self.mayFallBack = mayFallBack }

    /// The transport of the attempt that begins now.
    package mutating func begin(now: Instant) -> DDPTransport {
        if current == .sockJS, sockJSWorks, now - webSocketFailed >= DDPTransportChoice.pause {
            current = .webSocket
            failures = 0
        }
        return current
    }

    /// The server has sent `connected`.
    package mutating func connected() {
        switch current {
        case .webSocket:
            webSocketHasWorked = true
            failures = 0
        case .sockJS: sockJSWorks = true
        }
    }

    /// The connection ended before the server sent `connected`.
    /// - Parameter error: nil if the server closed it properly.
    package mutating func failed(_ error: RealtimeError?, now: Instant) {
        switch current {
        case .webSocket:
            guard mayFallBack, !DDPTransportChoice.concernsBoth(error) else { return }
            failures += 1
            webSocketFailed = now
            let isTrusted = webSocketHasWorked && !sockJSWorks
            guard failures >= (isTrusted ? DDPTransportChoice.patience : 1) else { return }
            current = .sockJS
        case .sockJS:
            guard !DDPTransportChoice.concernsBoth(error) else { return }
            current = .webSocket
            failures = 0
            sockJSWorks = false
        }
    }

    /// The machine's network has changed.
    package mutating func networkChanged() { self = DDPTransportChoice(mayFallBack: mayFallBack) }

    private static func concernsBoth(_ error: RealtimeError?) -> Bool {
        switch error?.code {
        case .resolve, .connect, .tls: true
        default: false
        }
    }
}
