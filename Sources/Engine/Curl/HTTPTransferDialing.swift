import Session
import Wire

// Makes the connection for an exchange when libcurl has none that it can use. libcurl then asks for
// a socket, gets none, and gives up; the exchange starts again once there is one.
extension HTTPTransfer {
    struct Dialing {
        let started = Loop.now()
        /// The limit from the start to an established connection, including TLS; zero for none.
        let limit: Duration
        private let owner: OptionOwner
        /// libcurl has asked for a socket.
        var isWanted = false
        var dial: CurlDial?
        /// Whether it may wait for a connection that another exchange makes. Only once: a server
        /// without HTTP/2 needs one for each.
        var mayShare = true
        var count = 0
        /// libcurl may repeat a request itself a few times, each time by a new connection.
        static let mostDials = 8

        init(_ options: borrowing HTTPTransferOptions) {
            limit = options.connectTimeout
            owner = options.owner
        }

        /// The limit, and the option that sets it.
        var limitText: String { limit.readable + owner.mention(.connectTimeout) }
    }

    /// Called by libcurl.
    func wantSocket() {
        guard dialing.count < Dialing.mostDials, handle.mayDial() else { return }
        dialing.isWanted = true
        note()
    }

    /// Call when libcurl has returned.
    func dial() {
        dialing.isWanted = false
        guard let target = handle.route.dialTarget else { return }
        multi.remove(self)
        // libcurl may repeat the request, whose body then waits for the server's word again.
        stopTimer()
        dialing.count += 1
        if dialing.limit > .zero {
            multi.loop.arm(timer(), self, at: dialing.started + dialing.limit)
        }
        dialing.dial = multi.dials.dial(
            for: self, to: target, named: "\(handle.route)", by: handle.dialNetwork,
            mayShare: handle.waitsForShare && dialing.mayShare)
    }

    /// The limit on connecting was reached.
    func dialTimeReached() {
        let error = late(dialing.limitText)
        dialing.dial?.leave(self)
        dialFailed(error)
    }

    /// The error for an attempt whose time ended before there was a connection.
    /// - Parameter time: the limit, and the option that sets it.
    func late(_ time: String) -> RealtimeError {
        guard let dial = dialing.dial else {
            return CurlFailure.late(time, of: easy, on: handle.route)
        }
        return CurlFailure.late(time, dial.connecting, on: handle.route)
    }

    private func resumeConnecting() {
        guard isOpen else { return }
        dialing.dial = nil
        stopTimer()
        multi.willBegin(self)
    }
}

extension HTTPTransfer: CurlBeginner {
    func begin() {
        guard isOpen else { return }
        let now = Loop.now()
        if dialing.limit > .zero {
            handle.limitConnecting(to: dialing.started + dialing.limit - now)
        }
        started = now
        do throws(RealtimeError) {
            try multi.add(self)
        } catch {
            dialFailed(error)
        }
    }
}

extension HTTPTransfer: CurlDialUser {
    func dialed(_ socket: DialedSocket) {
        handle.give(socket)
        if multi.sockets.isCrowded { handle.abandonConnection() }
        resumeConnecting()
    }

    func dialedForOther() {
        dialing.mayShare = false
        resumeConnecting()
    }
}
