import CShims
import Glibc
import Session
import Synchronization
import Wire

/// Is notified when the network has changed. Called on the loop's thread.
protocol NetworkObserver: AnyObject {
    func networkChanged()
}

/// Watches the machine's links, addresses and routes by rtnetlink, for one loop.
///
/// The kernel's change messages are not parsed; any of them triggers three short requests for the
/// whole state, at most once per `interval`. The messages are incomplete: an IPv4 route that is
/// removed with its link is not reported, and some are lost when the buffer is full (ENOBUFS).
///
/// Unchecked because its plain fields belong to the loop's owner, once it is attached.
final class NetworkMonitor: @unchecked Sendable {
    /// Changes within this time are reported together; several occur when a link comes up.
    private static let coalescing = Duration.milliseconds(50)
    /// The minimum time between two refreshes, and the delay after one that failed.
    private static let interval = Duration.milliseconds(250)

    /// A state younger than this is used without a refresh.
    private static let freshness = Duration.milliseconds(10)

    /// The loop retains the monitor.
    private unowned(unsafe) let loop: Loop
    private var descriptor: Int32
    private var token: UInt64?
    private let timer = LoopTimer()
    private var view: NetworkView
    private var refreshedAt: Instant
    private var observers: [ObjectIdentifier: any NetworkObserver] = [:]
    private var hasUnreportedChange = false
    private let names: LocalNames

    /// Whether a host given by name can be reached. Any thread.
    let isOnline: Atomic<Bool>

    /// Reads the state once. Any thread.
    /// - Throws: `.system` if the system does not let programs see its network.
    convenience init(_ loop: Loop) throws(RealtimeError) {
        let descriptor = shim_netlink_open(true)
        guard descriptor >= 0 else { throw NetworkMonitor.refusal(errno) }
        self.init(loop, descriptor)
        switch NetworkMonitor.snapshot() {
        case .failure(let cause): throw NetworkMonitor.refusal(cause)
        case .success(let snapshot):
            view = snapshot.view
            isOnline.store(view.isOnline, ordering: .relaxed)
            hasUnreportedChange = !snapshot.isConsistent
        }
    }

    private init(_ loop: Loop, _ descriptor: Int32) {
        self.loop = loop
        self.descriptor = descriptor
        isOnline = Atomic(true)
        refreshedAt = Loop.now()
        view = NetworkView()
        names = LocalNames(on: loop)
    }

    deinit { closeDescriptor() }

    private static func refusal(_ cause: Int32) -> RealtimeError {
        Loop.systemError("asking the kernel for the network", cause)
    }

    private func closeDescriptor() {
        if descriptor >= 0 { _ = Glibc.close(descriptor) }
        descriptor = -1
    }

    // MARK: The loop's owner only

    func attach() {
        guard token == nil, descriptor >= 0 else { return }
        watch()
        if hasUnreportedChange { refreshSoon() }
        hasUnreportedChange = false
        Log.write(.debug, "the network is watched; it is \(view.isOnline ? "on" : "off")line")
    }

    private func watch() {
        do throws(RealtimeError) {
            token = try loop.add(self, descriptor: descriptor, events: PollEvents.readable)
        } catch {
            // Tried again when the timer fires.
            refreshSoon()
        }
    }

    private func unwatch() {
        if let token { loop.remove(token, descriptor: descriptor) }
        token = nil
    }

    /// Notifies `observer` of changes, and retains it until it is removed.
    func add(_ observer: some NetworkObserver) {
        // After the loop's end nothing would remove the observer.
        guard descriptor >= 0 else { return }
        observers[ObjectIdentifier(observer)] = observer
    }

    func remove(_ observer: some NetworkObserver) { observers[ObjectIdentifier(observer)] = nil }

    /// Whether a connection to one of these hosts may succeed. Reads the kernel's current state,
    /// because a failed connection is often noticed before the change message that explains it.
    func reaches(_ hosts: [NetworkView.Host]) -> Bool {
        let now = Loop.now()
        // Not for each of a thousand connections that failed together.
        if now - refreshedAt >= NetworkMonitor.freshness, descriptor >= 0,
            timer.isArmed || shim_netlink_drain(descriptor)
        {
            refresh(now)
            if hasUnreportedChange { loop.schedule(self) }
        }
        return hosts.contains { view.reaches($0) || hasReachableAddress($0) }
    }

    /// The file is read at once, so that a name in it does not have to wait for a lookup.
    private func hasReachableAddress(_ host: NetworkView.Host) -> Bool {
        guard case .name(let name) = host else { return false }
        let listed = NetworkMonitor.hostsFile().map { HostsFile.addresses(of: name, in: $0) } ?? []
        if listed.contains(where: isReachable) { return true }
        return descriptor >= 0 && names.addresses(of: name, for: self).contains(where: isReachable)
    }

    private func isReachable(_ address: IPAddress) -> Bool {
        view.reaches(address.isLoopback ? .here : .address(address))
    }

    private static func hostsFile() -> [UInt8]? {
        let file = open("/etc/hosts", O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { _ = Glibc.close(file) }
        return [UInt8](unsafeUninitializedCapacity: HostsFile.limit) { bytes, count in
            while count < bytes.count {
                let got = read(file, bytes.baseAddress.map { $0 + count }, bytes.count - count)
                if got <= 0 { break }
                count += got
            }
        }
    }

    // MARK: Reading the kernel's state

    private struct Snapshot {
        var view: NetworkView
        /// Whether the network stayed the same while it was read.
        var isConsistent: Bool
    }

    private enum Outcome {
        case success(Snapshot)
        case failure(errno: Int32)
    }

    private func refreshSoon() {
        loop.arm(
            timer, self,
            at: max(
                Loop.now() + NetworkMonitor.coalescing, refreshedAt + NetworkMonitor.interval))
    }

    private func refresh(_ now: Instant) {
        loop.disarm(timer)
        refreshedAt = now
        _ = shim_netlink_drain(descriptor)
        if token == nil { watch() }
        switch NetworkMonitor.snapshot() {
        case .failure(let cause):
            Log.write(.debug, NetworkMonitor.refusal(cause).message)
            refreshSoon()
        case .success(let snapshot):
            if !snapshot.isConsistent { refreshSoon() }
            guard snapshot.view != view else { return }
            view = snapshot.view
            let isOnline = view.isOnline
            if self.isOnline.exchange(isOnline, ordering: .relaxed) != isOnline {
                Log.write(.info, "the network is \(isOnline ? "there again" : "gone")")
            }
            hasUnreportedChange = true
        }
    }

    private func reportChange() {
        guard hasUnreportedChange else { return }
        hasUnreportedChange = false
        for observer in observers.values { observer.networkChanged() }
    }

    /// Requests the whole state. The kernel answers while the request is sent, so this never waits.
    private static func snapshot() -> Outcome {
        let descriptor = shim_netlink_open(false)
        guard descriptor >= 0 else { return .failure(errno: errno) }
        defer { _ = Glibc.close(descriptor) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: NetworkMonitor.datagramBytes, alignment: 8)
        defer { buffer.deallocate() }
        var isConsistent = true
        var dump = NetlinkDump()
        for (index, request) in NetlinkDump.Question.allCases.enumerated() {
            switch perform(request, UInt32(index + 1), of: descriptor, &dump, buffer) {
            case .done: break
            case .interrupted: isConsistent = false
            case .refused(let cause): return .failure(errno: cause)
            case .more, .malformed: return .failure(errno: EPROTO)
            }
            // The view keeps no more than this.
            if dump.view.isCrowded { break }
        }
        return .success(Snapshot(view: dump.view, isConsistent: isConsistent))
    }

    /// The kernel's datagrams have at most 32 KiB; one that does not fit is an error.
    private static let datagramBytes = 64 << 10

    private static func perform(
        _ request: NetlinkDump.Question, _ sequence: UInt32, of descriptor: Int32,
        _ dump: inout NetlinkDump, _ buffer: UnsafeMutableRawBufferPointer
    ) -> NetlinkDump.Step {
        dump.begin(sequence)
        guard shim_netlink_ask(descriptor, request.rawValue, sequence) == 0 else {
            return .refused(errno)
        }
        while !dump.view.isCrowded {
            let count = shim_netlink_receive(descriptor, buffer.baseAddress, buffer.count)
            guard count >= 0 else { return .refused(errno) }
            let step = dump.read(
                UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer).prefix(count)))
            if step != .more { return step }
        }
        return .done
    }
}

extension NetworkMonitor: LocalNamesOwner {
    var awaitsNames: Bool { descriptor >= 0 && !observers.isEmpty && !view.isOnline }

    func namesChanged() {
        hasUnreportedChange = true
        loop.schedule(self)
    }
}

extension NetworkMonitor: LoopSource {
    /// Something changed. Stops watching until the refresh, so that more changes do not wake the
    /// loop.
    func ready(_ events: UInt32) {
        unwatch()
        refreshSoon()
    }

    func turn() { reportChange() }

    func loopClosed() {
        names.stop()
        token = nil
        closeDescriptor()
        observers = [:]
    }
}

extension NetworkMonitor: TimerTarget {
    func timeReached(_ now: Instant) {
        guard descriptor >= 0 else { return }
        refresh(now)
        reportChange()
    }
}
