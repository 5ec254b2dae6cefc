import Synchronization

/// What one kind of objects keeps once for each loop: pools, caches, a watch.
protocol LoopLocal: AnyObject, Sendable {
    /// The loop is over; nothing of it runs afterwards. Called by the loop's owner.
    func loopClosed()
}

extension LoopLocal {
    func loopClosed() {}
}

/// The locals of a loop, one of each type. They go with the loop's end.
struct LoopLocals: ~Copyable, Sendable {
    private let byType = Mutex<[ObjectIdentifier: any LoopLocal]?>([:])

    subscript<Local: LoopLocal>(type: Local.Type) -> Local? {
        byType.withLock { $0?[ObjectIdentifier(type)] } as? Local
    }

    /// Keeps `made`, unless another thread was faster or the loop is over.
    func keep<Local: LoopLocal>(_ made: Local) -> Local {
        let kept = byType.withLock { byType -> (any LoopLocal)? in
            let first = byType?[ObjectIdentifier(Local.self)]
            if first == nil { byType?[ObjectIdentifier(Local.self)] = made }
            return first
        }
        return kept as? Local ?? made
    }

    /// Outside the lock: they may hold user data, whose destroy may call us.
    func removeAll() {
        let old = byType.withLock { byType in
            defer { byType = nil }
            return byType
        }
        for local in (old ?? [:]).values { local.loopClosed() }
    }
}

extension Loop {
    /// This loop's object of a type, made at the first use. Any thread. It costs a lock and a
    /// lookup: who needs it often keeps it.
    func local<Local: LoopLocal, Failure: Error>(
        _ type: Local.Type, _ make: () throws(Failure) -> Local
    ) throws(Failure) -> Local {
        if let known = locals[type] { return known }
        return locals.keep(try make())
    }
}
