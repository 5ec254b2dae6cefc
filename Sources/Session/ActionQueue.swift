/// What a machine has decided and its driver has not begun yet, in order.
struct ActionQueue<Action: Sendable>: Sendable {
    /// Those that were taken are nil: to copy one would retain what is in it.
    private var actions: [Action?] = []
    private var first = 0
    /// How many of them were added since `mark`.
    private var sinceMark: Int?
    /// The storage of a longer queue is given back.
    private static var keptCapacity: Int { 1024 }

    var isEmpty: Bool { first == actions.count }

    mutating func append(_ action: consuming Action) {
        actions.append(action)
        sinceMark? += 1
    }

    mutating func next() -> Action? {
        guard first < actions.count else { return nil }
        let action = actions[first].take()
        first += 1
        if isEmpty {
            actions.removeAll(keepingCapacity: actions.capacity <= Self.keptCapacity)
            first = 0
        }
        return action
    }

    /// Separates what was added so far from what follows, unless an earlier mark stands.
    mutating func mark() { if sinceMark == nil { sinceMark = 0 } }

    mutating func removeMark() { sinceMark = nil }

    /// Whether the action that `next` returned last was added after the mark.
    var isPastMark: Bool { sinceMark.map { actions.count - first < $0 } ?? false }

    /// Removes an action that was not begun, and the one before it if that announces it.
    /// - Returns: false if there was none.
    mutating func withdraw(
        _ isMeant: (Action) -> Bool, announcedBy announces: (Action) -> Bool = { _ in false }
    ) -> Bool {
        guard let index = actions[first...].firstIndex(where: { $0.map(isMeant) ?? false })
        else { return false }
        remove(at: index)
        if index > first, actions[index - 1].map(announces) ?? false { remove(at: index - 1) }
        return true
    }

    private mutating func remove(at index: Int) {
        if let count = sinceMark, index >= actions.count - count { sinceMark = count - 1 }
        actions.remove(at: index)
    }

    mutating func removeAll(where isMeant: (Action) -> Bool) {
        if let count = sinceMark {
            sinceMark = actions.suffix(count).filter { $0.map { !isMeant($0) } ?? false }.count
        }
        actions.removeAll { $0.map(isMeant) ?? true }
        first = 0
    }

    /// The sum over all actions that were not begun.
    func sum(_ count: (Action) -> Int) -> Int {
        actions[first...].reduce(0) { $0 + ($1.map(count) ?? 0) }
    }
}
