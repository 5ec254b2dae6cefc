import CShims
import Session
import Wire

/// Makes a connection for a WebSocket: a `Dial` connects, then libcurl does TLS or asks a proxy. A
/// plain connection without a proxy does not need libcurl, which connects only to Unix sockets.
final class StreamConnect {
    private let url: HTTPURL
    private let network: NetworkConfiguration
    private let time: Duration?
    private let multi: CurlMulti
    private var owner: (any CurlConnectOwner)?
    private let route: CurlRoute
    private var dial: Dial?
    private var curl: CurlConnect?

    /// - Parameter time: the time until the owner gives up; nil for no limit.
    init(
        to url: HTTPURL, by network: NetworkConfiguration, within time: Duration?,
        multi: CurlMulti, owner: any CurlConnectOwner
    ) {
        self.url = url
        self.network = network
        self.time = time
        self.multi = multi
        self.owner = owner
        route = CurlRoute(to: url, by: network)
    }

    /// The owner is notified later, never inside this call.
    func start() throws(RealtimeError) {
        guard let owner else { return }
        guard let target = route.dialTarget else { return try secure(nil, for: owner) }
        let dial = Dial(
            to: target, named: "\(route)", by: network, probesIdle: false, on: multi.loop,
            owner: self)
        self.dial = dial
        dial.start()
    }

    private func secure(
        _ socket: DialedSocket?, for owner: any CurlConnectOwner
    ) throws(RealtimeError) {
        curl = try CurlConnect(
            to: url, by: network, over: socket, within: time, multi: multi, owner: owner)
        self.owner = nil
    }

    /// Drops the attempt.
    func close() {
        owner = nil
        dial?.cancel()
        curl?.close()
    }

    /// The error for an attempt that took too long.
    /// - Parameter time: the limit, and the option that sets it.
    func late(_ time: String) -> RealtimeError {
        if let curl { return curl.late(time) }
        return CurlFailure.late(time, dial, on: route)
    }
}

extension StreamConnect: DialOwner {
    func dialed(_ socket: DialedSocket) {
        dial = nil
        guard let owner else { return }
        guard url.isSecure || route.proxyURL != nil else {
            self.owner = nil
            return owner.connected(socket.descriptor, nil)
        }
        do throws(RealtimeError) {
            try secure(socket, for: owner)
        } catch {
            self.owner = nil
            owner.connectFailed(error)
        }
    }

    func dialFailed(_ error: RealtimeError) {
        dial = nil
        owner?.connectFailed(error)
    }

    func loopClosed() { owner?.loopClosed() }
}
