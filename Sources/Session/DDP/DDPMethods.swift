import Wire

/// A call that was not completed yet.
struct DDPMethod: Sendable {
    let id: DDPSession.CallID
    let message: [UInt8]
    let isWait: Bool
    let noRetry: Bool
    var purpose = DDPMethodPurpose.application
    /// Handed to the socket of this connection.
    var isSent = false
    /// How often it was handed to a socket.
    var sentCount = 0
    /// Will neither be sent again nor answered: its connection was lost, or its time was up before
    /// it was sent.
    var isAbandoned = false
    /// The time limit has passed, and was reported.
    var isReported = false
    var result: Result<EJSON, DDPError>?
    /// The server has sent all documents that it wrote, since it was sent last.
    var isUpdated = false
    /// And they are in the store.
    var isVisible = false
    var due: Instant?
}

/// Calls that may be in flight together.
struct DDPBlock: Sendable {
    let isWait: Bool
    /// In order. Some may have been answered since.
    var ids: [DDPSession.CallID]
    /// How many of them were not answered.
    var unanswered: Int
    /// How many of them, from the first one, were given to the connection or need not be sent.
    var taken = 0

    init(isWait: Bool, ids: [DDPSession.CallID]) {
        self.isWait = isWait
        self.ids = ids
        unanswered = ids.count
    }
}

/// The calls in the order in which they are sent. Only those of the first block are in flight.
struct DDPMethods: Sendable {
    private(set) var byID: [DDPSession.CallID: DDPMethod] = [:]
    private var blocks: [DDPBlock] = []
    /// Earlier blocks are over.
    private var firstIndex = 0
    /// How many calls were sent on this connection, and are not completed.
    private(set) var sentCount = 0
    /// For how many of them the server has not sent all documents.
    private var outstandingCount = 0
    /// The blocks from before this connection, while the calls that reconnecting makes are added.
    private var aside: [DDPBlock]?
    private var lastID: DDPSession.CallID = 0
    /// The calls with a time limit.
    private var timed = DueQueue<DDPSession.CallID>()

    var sortedIDs: [DDPSession.CallID] { byID.keys.sorted() }

    func isSent(_ id: DDPSession.CallID) -> Bool { byID[id]?.isSent ?? false }

    /// Forgets all calls, but not which ids were used.
    mutating func removeAll() {
        let last = lastID
        self = DDPMethods()
        lastID = last
    }

    mutating func nextID() -> DDPSession.CallID {
        lastID += 1
        return lastID
    }

    /// Changes a call, if it is not completed.
    mutating func change(_ id: DDPSession.CallID, _ body: (inout DDPMethod) -> Void) {
        guard let index = byID.index(forKey: id) else { return }
        body(&byID.values[index])
    }

    /// - Parameter goesFirst: whether it goes before the blocks that are set aside.
    /// - Returns: whether it belongs to the first block, and so may be sent at once.
    mutating func append(_ method: DDPMethod, goesFirst: Bool) -> Bool {
        byID[method.id] = method
        if let due = method.due { timed.set(method.id, due: due) }
        if !goesFirst, aside != nil {
            aside?.append(method, from: 0)
            return false
        }
        blocks.append(method, from: firstIndex)
        return blocks.count - firstIndex == 1
    }

    /// - Returns: the message.
    mutating func sent(_ id: DDPSession.CallID) -> [UInt8]? {
        guard let index = byID.index(forKey: id), !byID.values[index].isSent else { return nil }
        byID.values[index].isSent = true
        byID.values[index].sentCount += 1
        byID.values[index].isUpdated = false
        byID.values[index].isVisible = false
        sentCount += 1
        outstandingCount += 1
        return byID.values[index].message
    }

    /// The server has sent all documents that the call wrote.
    mutating func updated(_ id: DDPSession.CallID) {
        guard let index = byID.index(forKey: id), !byID.values[index].isUpdated else { return }
        byID.values[index].isUpdated = true
        if byID.values[index].isSent { outstandingCount -= 1 }
    }

    /// Calls are in flight, and the server owes them nothing any more.
    var areOnlyWaiting: Bool {
        sentCount > 0 && outstandingCount == 0 && firstIndex < blocks.count
            && blocks[firstIndex].unanswered == 0
    }

    /// The call has a result. It stays until its documents are there.
    mutating func answered(_ id: DDPSession.CallID, _ result: Result<EJSON, DDPError>) {
        guard let method = byID[id], method.result == nil else { return }
        change(id) { $0.result = result }
        // What was sent belongs to the first block.
        let block =
            method.isSent
            ? firstIndex
            : blocks[firstIndex...].firstIndex { $0.ids.contains(id) } ?? blocks.endIndex
        guard block < blocks.endIndex else { return }
        blocks[block].unanswered -= 1
        if blocks[block].ids.count > 2 * blocks[block].unanswered + 16 { compact(block) }
    }

    private mutating func compact(_ index: Int) {
        func isOpen(_ id: DDPSession.CallID) -> Bool { byID[id].map { $0.result == nil } ?? false }
        let block = blocks[index]
        let taken = block.ids[..<block.taken].filter(isOpen)
        blocks[index].ids = taken + block.ids[block.taken...].filter(isOpen)
        blocks[index].taken = taken.count
    }

    /// Takes a call out that has no result and will get none.
    mutating func withdraw(_ id: DDPSession.CallID) {
        answered(id, .success(.null))
        _ = remove(id)
    }

    mutating func remove(_ id: DDPSession.CallID) -> DDPMethod? {
        guard let method = byID.removeValue(forKey: id) else { return nil }
        if method.isSent {
            sentCount -= 1
            if !method.isUpdated { outstandingCount -= 1 }
        }
        timed.remove(id)
        return method
    }

    /// When the first time limit passes.
    var due: Instant? { timed.first }

    /// Takes the calls whose time limit has passed, in order. They are limited no longer.
    mutating func takeExpired(_ now: Instant) -> [DDPSession.CallID] {
        timed.takeDue(now).sorted()
    }

    /// Takes the calls of the first block that were not sent on this connection: the caller sends
    /// them.
    mutating func takeUnsentOfFirst() -> [DDPSession.CallID] {
        guard firstIndex < blocks.count else { return [] }
        let block = blocks[firstIndex]
        guard block.taken < block.ids.count else { return [] }
        blocks[firstIndex].taken = block.ids.count
        return block.ids[block.taken...].filter { id in
            byID.index(forKey: id).map {
                byID.values[$0].result == nil && !byID.values[$0].isSent
            } ?? false
        }
    }

    /// When no call is in flight any more, the next block is the first one.
    mutating func advance() {
        guard sentCount == 0 else { return }
        dropEmpty()
    }

    private mutating func dropEmpty() {
        while firstIndex < blocks.count, blocks[firstIndex].unanswered == 0 { firstIndex += 1 }
        if firstIndex == blocks.count || firstIndex > 64, firstIndex * 2 > blocks.count {
            blocks.removeFirst(firstIndex)
            firstIndex = 0
        }
    }

    // MARK: Reconnecting

    /// No call counts as sent any more, and the blocks are set aside.
    mutating func setAside() {
        for index in byID.values.indices { byID.values[index].isSent = false }
        (sentCount, outstandingCount) = (0, 0)
        if firstIndex < blocks.count, blocks[firstIndex].unanswered == 0 { firstIndex += 1 }
        for index in firstIndex..<blocks.count {
            blocks[index].taken = 0
            compact(index)
        }
        aside = blocks[firstIndex...].filter { $0.unanswered > 0 }
        blocks = []
        firstIndex = 0
    }

    /// Puts the blocks that were set aside after the new ones.
    mutating func restore() {
        guard var old = aside else { return }
        aside = nil
        if let last = blocks.indices.last, last >= firstIndex, !blocks[last].isWait,
            let first = old.first, !first.isWait
        {
            blocks[last].ids += first.ids
            blocks[last].unanswered += first.unanswered
            old.removeFirst()
        }
        blocks += old
    }
}

extension [DDPBlock] {
    /// Adds a call to the last block, or as a block of its own.
    /// - Parameter first: the blocks before it are over.
    fileprivate mutating func append(_ method: DDPMethod, from first: Int) {
        if !method.isWait, let last = indices.last, last >= first, !self[last].isWait {
            self[last].ids.append(method.id)
            self[last].unanswered += 1
        } else {
            append(DDPBlock(isWait: method.isWait, ids: [method.id]))
        }
    }
}
