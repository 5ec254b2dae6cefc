import CShims
import Glibc
import Session
import Synchronization
import Wire

/// Who wants to know when the network has changed.
protocol NetworkObserver: AnyObject {
    func networkChanged()
}

/// Watches the machine's links, addresses and routes by rtnetlink: one for each loop that asks.
///
/// What the kernel tells of changes is not read: that something changed is reason enough to ask
/// for everything again. The kernel does not tell everything (an IPv4 route that goes with its
/// link goes silently), and what was lost for want of room (ENOBUFS) is not missed. So a change
/// costs three short questions, at most every `interval`, however many there are.
///
/// Unchecked because its plain fields belong to the loop's owner, once it is attached.
final class NetworkMonitor: @unchecked Sendable {
    /// Changes that come together, as they do when a link comes up, are told once.
    private static let coalescing = Duration.milliseconds(50)
    /// The least time between two looks, and the wait before another try when one failed.
    private static let interval = Duration.milliseconds(250)

    /// What was seen so recently is taken for true.
    private static let freshness = Duration.milliseconds(10)

    /// Which holds this one.
    private unowned(unsafe) let loop: Loop
    private var descriptor: Int32
    private var token: UInt64?
    private let timer = LoopTimer()
    private var view: NetworkView
    private var lookedAt: Instant
    private var observers: [ObjectIdentifier: any NetworkObserver] = [:]
    private var owesNews = false

    /// Whether a host known by name can be reached. Any thread.
    let isOnline: Atomic<Bool>

    /// Looks once. Any thread.
    /// - Throws: `.system` where the system does not let a program see its network.
    convenience init(_ loop: Loop) throws(RealtimeError) {
        let descriptor = shim_netlink_open(true)
        guard descriptor >= 0 else { throw NetworkMonitor.refusal(errno) }
        self.init(loop, descriptor)
        switch NetworkMonitor.look() {
        case .failure(let cause): throw NetworkMonitor.refusal(cause)
        case .success(let look):
            view = look.view
            isOnline.store(view.isOnline, ordering: .relaxed)
            owesNews = !look.isWhole
        }
    }

    private init(_ loop: Loop, _ descriptor: Int32) {
        self.loop = loop
        self.descriptor = descriptor
        isOnline = Atomic(true)
        lookedAt = Loop.now()
        view = NetworkView()
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
        if owesNews { lookSoon() }
        owesNews = false
        Log.write(.debug, "the network is watched; it is \(view.isOnline ? "on" : "off")line")
    }

    private func watch() {
        do throws(RealtimeError) {
            token = try loop.add(self, descriptor: descriptor, events: PollEvents.readable)
        } catch {
            // Another try when the timer has run.
            lookSoon()
        }
    }

    private func unwatch() {
        if let token { loop.remove(token, descriptor: descriptor) }
        token = nil
    }

    /// Notifies the observer of changes, and retains it, until it is removed.
    func add(_ observer: some NetworkObserver) {
        // After the loop's end nothing would remove the observer.
        guard descriptor >= 0 else { return }
        observers[ObjectIdentifier(observer)] = observer
    }

    func remove(_ observer: some NetworkObserver) { observers[ObjectIdentifier(observer)] = nil }

    /// Whether a connection to one of these may succeed, by what the kernel knows now: a failure is
    /// often noticed before the news of its cause is read.
    func reaches(_ hosts: [NetworkView.Host]) -> Bool {
        let now = Loop.now()
        // Not for each of a thousand connections that failed together.
        if now - lookedAt >= NetworkMonitor.freshness, descriptor >= 0,
            timer.isArmed || shim_netlink_drain(descriptor)
        {
            lookAgain(now)
            if owesNews { loop.schedule(self) }
        }
        return hosts.contains { view.reaches($0) || isThisMachine($0) }
    }

    private func isThisMachine(_ host: NetworkView.Host) -> Bool {
        guard case .name(let name) = host, let bytes = NetworkMonitor.hostsFile() else {
            return false
        }
        return HostsFile.addresses(of: name, in: bytes).contains {
            view.reaches($0.isLoopback ? .here : .address($0))
        }
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

    // MARK: Looking

    private struct Look {
        var view: NetworkView
        /// The network did not change meanwhile.
        var isWhole: Bool
    }

    private enum Outcome {
        case success(Look)
        case failure(errno: Int32)
    }

    private func lookSoon() {
        loop.arm(
            timer, self,
            at: max(
                Loop.now() + NetworkMonitor.coalescing, lookedAt + NetworkMonitor.interval))
    }

    private func lookAgain(_ now: Instant) {
        loop.disarm(timer)
        lookedAt = now
        _ = shim_netlink_drain(descriptor)
        if token == nil { watch() }
        switch NetworkMonitor.look() {
        case .failure(let cause):
            Log.write(.debug, NetworkMonitor.refusal(cause).message)
            lookSoon()
        case .success(let look):
            if !look.isWhole { lookSoon() }
            guard look.view != view else { return }
            view = look.view
            let isOnline = view.isOnline
            if self.isOnline.exchange(isOnline, ordering: .relaxed) != isOnline {
                Log.write(.info, "the network is \(isOnline ? "there again" : "gone")")
            }
            owesNews = true
        }
    }

    private func tell() {
        guard owesNews else { return }
        owesNews = false
        for observer in observers.values { observer.networkChanged() }
    }

    /// Asks for everything. An answer of the kernel's is there when the question was sent, so that
    /// nothing is waited for.
    private static func look() -> Outcome {
        let descriptor = shim_netlink_open(false)
        guard descriptor >= 0 else { return .failure(errno: errno) }
        defer { _ = Glibc.close(descriptor) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: NetworkMonitor.datagramBytes, alignment: 8)
        defer { buffer.deallocate() }
        var isWhole = true
        var dump = NetlinkDump()
        for (index, question) in NetlinkDump.Question.allCases.enumerated() {
            switch ask(question, UInt32(index + 1), of: descriptor, &dump, buffer) {
            case .done: break
            case .interrupted: isWhole = false
            case .refused(let cause): return .failure(errno: cause)
            case .more, .malformed: return .failure(errno: EPROTO)
            }
            // The rest would not be kept.
            if dump.view.isCrowded { break }
        }
        return .success(Look(view: dump.view, isWhole: isWhole))
    }

    /// The kernel's datagrams have 32 KiB at most; one that does not fit is an error.
    private static let datagramBytes = 64 << 10

    private static func ask(
        _ question: NetlinkDump.Question, _ sequence: UInt32, of descriptor: Int32,
        _ dump: inout NetlinkDump, _ buffer: UnsafeMutableRawBufferPointer
    ) -> NetlinkDump.Step {
        dump.begin(sequence)
        guard shim_netlink_ask(descriptor, question.rawValue, sequence) == 0 else {
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

extension NetworkMonitor: LoopSource {
    /// Something changed: what else comes waits with it, and does not wake the loop.
    func ready(_ events: UInt32) {
        unwatch()
        lookSoon()
    }

    func turn() { tell() }

    func loopClosed() {
        token = nil
        closeDescriptor()
        observers = [:]
    }
}

extension NetworkMonitor: TimerTarget {
    func timeReached(_ now: Instant) {
        guard descriptor >= 0 else { return }
        lookAgain(now)
        tell()
    }
}
