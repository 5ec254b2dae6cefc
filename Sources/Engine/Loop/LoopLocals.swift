import Synchronization

/// State that all objects of one kind share on a loop: pools, caches, a monitor.
protocol LoopLocal: AnyObject, Sendable {
    /// The loop has ended and will run nothing more. Called by the loop's owner.
    func loopClosed()
}

extension LoopLocal {
    func loopClosed() {}
}

/// The locals of a loop, one of each type. They are released when the loop ends.
struct LoopLocals: ~Copyable, Sendable {
    private let byType = Mutex<[ObjectIdentifier: any LoopLocal]?>([:])

    subscript<Local: LoopLocal>(type: Local.Type) -> Local? {
        byType.withLock { $0?[ObjectIdentifier(type)] } as? Local
    }

    /// Keeps `made`, unless another thread was faster or the loop has ended. Returns the one to
    /// use.
    func keep<Local: LoopLocal>(_ made: Local) -> Local {
        let kept = byType.withLock { byType -> (any LoopLocal)? in
            let first = byType?[ObjectIdentifier(Local.self)]
            if first == nil { byType?[ObjectIdentifier(Local.self)] = made }
            return first
        }
        return kept as? Local ?? made
    }

    /// Calls them without the lock: they may hold user data, whose destroy function may call us.
    func removeAll() {
        let old = byType.withLock { exchange(&$0, with: nil) }
        for local in (old ?? [:]).values { local.loopClosed() }
    }
}

extension Loop {
    /// This loop's local of a type, made when first used. Any thread. The call takes a lock and a
    /// lookup, so objects that need the local often store it.
    func local<Local: LoopLocal, Failure: Error>(
        _ type: Local.Type, _ make: () throws(Failure) -> Local
    ) throws(Failure) -> Local {
        if let known = locals[type] { return known }
        return locals.keep(try make())
    }
}
