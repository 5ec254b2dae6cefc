import Session
import Wire

/// An exchange that waits for a connected socket.
protocol CurlDialUser: AnyObject {
    func dialed(_ socket: DialedSocket)
    /// Another exchange has got the socket. Its connection may be shared.
    func dialedForOther()
    func dialFailed(_ error: RealtimeError)
    /// The loop has ended.
    func multiClosed()
}

/// A connection being made for one exchange, or for several that hope to share it by HTTP/2.
final class CurlDial {
    /// What the exchanges that share a connection have in common.
    struct Key: Equatable {
        var target: ConnectTarget
        var network: NetworkConfiguration
    }

    fileprivate let key: Key?
    private let dials: CurlDials
    private var dial: Dial?
    /// The first one gets the socket.
    private var users: [any CurlDialUser]

    fileprivate init(for user: any CurlDialUser, _ key: Key?, of dials: CurlDials) {
        self.key = key
        self.dials = dials
        users = [user]
    }

    fileprivate func start(
        to target: ConnectTarget, named name: String, by network: NetworkConfiguration
    ) {
        let dial = Dial(
            to: target, named: name, by: network, probesIdle: true, on: dials.loop, owner: self)
        self.dial = dial
        dial.start()
    }

    fileprivate func add(_ user: any CurlDialUser) { users.append(user) }

    /// The user does not wait any more.
    func leave(_ user: some CurlDialUser) {
        users.removeAll { $0 === user }
        guard users.isEmpty else { return }
        dial?.cancel()
        finish()
    }

    /// What connects; nil once that is over.
    var connecting: Dial? { dial }

    @discardableResult private func finish() -> [any CurlDialUser] {
        dials.remove(self)
        dial = nil
        defer { users = [] }
        return users
    }
}

extension CurlDial: DialOwner {
    func dialed(_ socket: DialedSocket) {
        let users = finish()
        // libcurl must know of the connection before the others look for one.
        users.first?.dialed(socket)
        for user in users.dropFirst() { user.dialedForOther() }
    }

    func dialFailed(_ error: RealtimeError) {
        for user in finish() { user.dialFailed(error) }
    }

    func loopClosed() {
        for user in finish() { user.multiClosed() }
    }
}

/// The connections being made for a loop's exchanges.
final class CurlDials {
    /// The loop retains the multi handle, which retains this object.
    fileprivate unowned(unsafe) let loop: Loop
    private var shared: [CurlDial] = []

    init(on loop: Loop) { self.loop = loop }

    /// - Parameter mayShare: whether exchanges with the same server can wait for one connection.
    func dial(
        for user: some CurlDialUser, to target: ConnectTarget, named name: String,
        by network: NetworkConfiguration, mayShare: Bool
    ) -> CurlDial {
        let key = mayShare ? CurlDial.Key(target: target, network: network) : nil
        if let key, let known = shared.first(where: { $0.key == key }) {
            known.add(user)
            return known
        }
        let dial = CurlDial(for: user, key, of: self)
        if mayShare { shared.append(dial) }
        dial.start(to: target, named: name, by: network)
        return dial
    }

    fileprivate func remove(_ dial: CurlDial) { shared.removeAll { $0 === dial } }
}
