import CShims
import Glibc
import Session
import Wire

/// Waits for a connected socket. Called on the loop's thread, never inside `Dial.start`.
protocol DialOwner: AnyObject {
    /// The owner owns the socket now.
    func dialed(_ socket: DialedSocket)
    func dialFailed(_ error: RealtimeError)
    /// The loop has ended.
    func loopClosed()
}

/// A connected socket that does not block.
struct DialedSocket {
    let descriptor: Int32
    /// connect() has returned 0 for it. Usually it has only returned EINPROGRESS.
    let isComplete: Bool
}

/// Makes one TCP connection: looks up the host's addresses, and connects to them as an
/// `AddressRace` decides.
final class Dial {
    private let target: ConnectTarget
    /// The host and the route to it, for messages.
    private let name: String
    private let network: NetworkConfiguration
    /// Whether idle connections are probed even if the network does not say so.
    private let probesIdle: Bool
    private let loop: Loop
    private var owner: (any DialOwner)?
    private var addresses: [shim_address] = []
    private var race = AddressRace([])
    private var attempts: [DialAttempt] = []
    private let timer = LoopTimer()
    private var isLookingUp = false
    /// To be reported in the loop's next turn.
    private var failure: RealtimeError?

    init(
        to target: ConnectTarget, named name: String, by network: NetworkConfiguration,
        probesIdle: Bool, on loop: Loop, owner: any DialOwner
    ) {
        self.target = target
        self.name = name
        self.network = network
        self.probesIdle = probesIdle
        self.loop = loop
        self.owner = owner
    }

    func start() {
        let version = network.ipVersion.rawValue
        guard let known = target.known else {
            isLookingUp = true
            return Lookups.of(loop).lookUp(target.host, version: version, for: self)
        }
        let found = known.flatMap {
            LookupAnswer(of: $0, version: version, isNumeric: true).addresses
        }
        if found.isEmpty {
            let kind = version == 0 ? "IP" : "IPv\(version)"
            fail(.resolve, "\(known.joined(separator: ", ")) is not an \(kind) address")
        } else {
            begin(found)
        }
    }

    /// Gives up; the owner is not notified any more.
    func cancel() {
        guard owner != nil, !loop.isForked else { return }
        end()
    }

    @discardableResult private func end() -> (any DialOwner)? {
        defer { owner = nil }
        loop.disarm(timer)
        if isLookingUp { Lookups.of(loop).cancel(self) }
        isLookingUp = false
        for attempt in attempts { attempt.close() }
        attempts = []
        return owner
    }

    // MARK: The race

    private func begin(_ found: [shim_address]) {
        addresses = found
        race = AddressRace(
            found.map { address in
                withUnsafePointer(to: address) { shim_address_version($0) } == 4 ? .v4 : .v6
            })
        advance()
    }

    /// Starts the attempts that are due.
    private func advance() {
        while failure == nil, let position = race.next(Loop.now()) { connect(to: position) }
        guard failure == nil else { return }
        if race.isLost { return report(lost) }
        if let wakeUp = race.wakeUp {
            loop.arm(timer, self, at: wakeUp)
        } else {
            loop.disarm(timer)
        }
    }

    private func connect(to position: Int) {
        var isComplete = false
        let descriptor = withOptions { options in
            withUnsafePointer(to: addresses[position]) {
                shim_dial($0, target.port, options, &isComplete)
            }
        }
        guard descriptor >= 0 else {
            let cause = errno
            guard cause == EMFILE || cause == ENFILE else { return race.failed(position, cause) }
            return report(Dial.shortage(cause, name))
        }
        let attempt = DialAttempt(position, descriptor, isComplete, of: self)
        attempts.append(attempt)
        do throws(RealtimeError) {
            try attempt.watch(on: loop)
            Log.write(.debug, "connecting to \(name) at \(text(of: position))")
        } catch {
            report(error)
        }
    }

    fileprivate func ready(_ attempt: DialAttempt, _ events: UInt32) {
        let cause = shim_dial_error(attempt.descriptor)
        guard cause == 0, events & PollEvents.writable != 0 else {
            attempt.close()
            attempts.removeAll { $0 === attempt }
            race.failed(attempt.position, cause == 0 ? ECONNRESET : cause)
            return advance()
        }
        attempts.removeAll { $0 === attempt }
        attempt.unwatch()
        end()?.dialed(
            DialedSocket(descriptor: attempt.descriptor, isComplete: attempt.isComplete))
    }

    private func withOptions<Result>(
        _ body: (UnsafePointer<shim_socket_options>) -> Result
    ) -> Result {
        var options = shim_socket_options()
        options.receive_buffer_bytes = Int32(clamping: network.receiveBufferBytes)
        options.no_delay = network.tcpNoDelay
        if network.tcpKeepAlive > .zero {
            // Whole seconds, at least one.
            let seconds = network.tcpKeepAlive.clampedNanoseconds / 1_000_000_000
            options.idle_time = Int32(clamping: max(1, seconds))
            options.probe_interval = options.idle_time
        } else if probesIdle {
            (options.idle_time, options.probe_interval, options.probes) = (20, 5, 3)
        }
        guard let interface = network.interface else { return body(&options) }
        return interface.withCString { text in
            options.interface = text
            return body(&options)
        }
    }

    // MARK: Errors

    /// Reported in the loop's turn, because `start` may be on the stack.
    private func report(_ error: RealtimeError) {
        end().map { owner = $0 }
        failure = error
        loop.schedule(self)
    }

    private func fail(_ code: RealtimeError.Code, _ reason: String) {
        report(
            RealtimeError(target.isProxy ? .proxy : code, "cannot connect to \(name): \(reason)"))
    }

    /// The error for a process that cannot open more descriptors.
    static func shortage(_ cause: Int32, _ name: String) -> RealtimeError {
        Loop.systemError(
            "cannot connect to \(name): no descriptor is free, see \"ulimit -n\"", cause)
    }

    private var lost: RealtimeError {
        let reason = race.reason { failure in
            let what = String(cString: strerror(failure.cause)).withLowercasedFirst
            let place = target.known?.first == target.host ? "" : " (\(text(of: failure.position)))"
            guard let interface = network.interface, shim_is_interface_failure(failure.cause)
            else { return what + place }
            // A private key that was given by mistake is not shown.
            let name = FileName.isPEM(interface) ? "that is PEM text" : interface.quoted()
            return "\(what) for the interface \(name)\(place)"
        }
        return RealtimeError(
            target.isProxy ? .proxy : .connect, "cannot connect to \(name): \(reason)",
            systemError: race.cause(isLocal: shim_is_local_failure))
    }

    /// What it still waits for, for the error of an attempt that takes too long.
    var delay: String {
        if isLookingUp { return "its name is still being looked up" }
        let places = race.pending.prefix(4).map(text(of:))
        return places.isEmpty ? "" : "no answer from \(places.joined(separator: ", "))"
    }

    private func text(of position: Int) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 80) { room in
            guard let text = room.baseAddress else { return "" }
            withUnsafePointer(to: addresses[position]) {
                shim_address_text($0, target.port, text, room.count)
            }
            return String(cString: text)
        }
    }
}

extension Dial: LookupWaiter {
    func lookedUp(_ answer: LookupAnswer) {
        guard owner != nil else { return }
        isLookingUp = false
        guard answer.addresses.isEmpty else { return begin(answer.addresses) }
        let shortage = shim_descriptor_shortage()
        guard shortage == 0 else { return report(Dial.shortage(shortage, name)) }
        let cause =
            answer.code == Int32(SHIM_LOOK_UP_AGAIN)
            ? " (\(String(cString: shim_look_up_error(answer.code)).withLowercasedFirst))" : ""
        let whose = target.isProxy ? "the proxy's" : "its"
        fail(.resolve, "\(whose) name cannot be resolved\(cause)")
    }
}

extension Dial: LoopSource, TimerTarget {
    /// Not called: the attempts have the descriptors.
    func ready(_ events: UInt32) {}

    func turn() {
        guard let failure else { return }
        end()?.dialFailed(failure)
    }

    func timeReached(_ now: Instant) { advance() }

    func loopClosed() { end()?.loopClosed() }
}

/// A socket that is connecting to one of the addresses.
private final class DialAttempt: LoopSource {
    let position: Int
    let descriptor: Int32
    let isComplete: Bool
    private let dial: Dial
    private var watched: (loop: Loop, token: UInt64)?

    init(_ position: Int, _ descriptor: Int32, _ isComplete: Bool, of dial: Dial) {
        self.position = position
        self.descriptor = descriptor
        self.isComplete = isComplete
        self.dial = dial
    }

    func watch(on loop: Loop) throws(RealtimeError) {
        let token = try loop.add(self, descriptor: descriptor, events: PollEvents.writable)
        watched = (loop, token)
    }

    func unwatch() {
        if let watched { watched.loop.remove(watched.token, descriptor: descriptor) }
        watched = nil
    }

    func close() {
        unwatch()
        _ = Glibc.close(descriptor)
    }

    func ready(_ events: UInt32) { dial.ready(self, events) }
    func turn() {}
    func loopClosed() { dial.loopClosed() }
}

extension String {
    /// As needed after a colon: "connection refused".
    var withLowercasedFirst: String {
        guard let first else { return self }
        return first.lowercased() + dropFirst()
    }
}
