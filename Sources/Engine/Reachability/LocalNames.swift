import CShims
import Session
import Wire

/// Is notified when a name turns out to have other addresses. Called on the loop's thread.
protocol LocalNamesOwner: AnyObject {
    func namesChanged()
    /// Whether names still matter: something may wait for one of them.
    var awaitsNames: Bool { get }
}

/// Addresses of names that no route leads to. Without a network, a name may still lead to this
/// machine or to one that is reachable: by /etc/hosts, by a resolver on this machine, or by another
/// source of names. So such names are looked up, and the owner is notified of the answer. As long
/// as there is no network, they are looked up again at intervals, because nothing reports that a
/// name leads elsewhere.
final class LocalNames {
    private struct Entry {
        var addresses: [IPAddress] = []
        /// nil while it is being looked up.
        var receivedAt: Instant?
    }

    /// An answer younger than this is not asked for again.
    private static let freshness = Duration.seconds(1)
    private static let most = 256
    /// The time between two lookups of a name.
    private static let interval = Duration.seconds(5)

    private unowned(unsafe) let loop: Loop
    /// Set while names are looked up again.
    private var owner: (any LocalNamesOwner)?
    private let timer = LoopTimer()
    private var answers: [ByteText: Entry] = [:]

    init(on loop: Loop) { self.loop = loop }

    /// The addresses as far as they are known. If they are not, or no more, they are looked up.
    func addresses(of name: String, for owner: any LocalNamesOwner) -> [IPAddress] {
        if self.owner == nil {
            self.owner = owner
            loop.arm(timer, self, at: Loop.now() + LocalNames.interval)
        }
        let known = answers[ByteText(name)]
        if let known {
            guard let time = known.receivedAt, Loop.now() - time >= LocalNames.freshness else {
                return known.addresses
            }
        } else if answers.count >= LocalNames.most {
            answers = answers.filter { $0.value.receivedAt == nil }
            if answers.count >= LocalNames.most { return [] }
        }
        answers[ByteText(name)] = Entry(addresses: known?.addresses ?? [])
        Lookups.of(loop).lookUp(name, version: 0, for: NameLookup(name, self, owner))
        return known?.addresses ?? []
    }

    /// Looks no name up any more. Needed at the end, because this retains its owner.
    func stop() {
        loop.disarm(timer)
        owner = nil
        answers = [:]
    }

    fileprivate func found(
        _ addresses: [IPAddress], of name: String, _ owner: any LocalNamesOwner
    ) {
        let name = ByteText(name)
        let isNew = answers[name]?.addresses != addresses
        answers[name] = Entry(addresses: addresses, receivedAt: Loop.now())
        if isNew { owner.namesChanged() }
    }
}

extension LocalNames: TimerTarget {
    func timeReached(_ now: Instant) {
        guard let owner, owner.awaitsNames else { return stop() }
        for name in Array(answers.keys) { _ = addresses(of: name.text, for: owner) }
        loop.arm(timer, self, at: now + LocalNames.interval)
    }
}

private final class NameLookup: LookupWaiter {
    private let name: String
    private let names: LocalNames
    private let owner: any LocalNamesOwner

    init(_ name: String, _ names: LocalNames, _ owner: any LocalNamesOwner) {
        self.name = name
        self.names = names
        self.owner = owner
    }

    func lookedUp(_ answer: LookupAnswer) {
        names.found(answer.addresses.compactMap { IPAddress($0) }, of: name, owner)
    }

    func loopClosed() {}
}

extension IPAddress {
    fileprivate init?(_ address: shim_address) {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = withUnsafePointer(to: address) { shim_address_bytes($0, &bytes) }
        self.init(bytes.prefix(Int(count)))
    }
}
