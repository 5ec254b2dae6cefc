import Synchronization

/// The states of a connection, in order: that at the beginning of the iteration, and each change.
///
///     for await state in socket.states { print(state) }
///
/// Any number of tasks iterate, each with an iteration of its own. It ends after the last state,
/// when the object is closed for good or released, and when its task is cancelled. It does not keep
/// the object. A slow iteration gets the last 64 changes; older ones are left out.
public struct StateSequence<State: Sendable & Equatable>: AsyncSequence, Sendable {
    public typealias Element = State
    public typealias Failure = Never

    let hub: StateHub<State>

    public func makeAsyncIterator() -> Iterator { Iterator(hub) }

    public struct Iterator: AsyncIteratorProtocol {
        private let hub: StateHub<State>
        private var position: Int

        init(_ hub: StateHub<State>) {
            self.hub = hub
            position = hub.position
        }

        /// Waits for the next state; nil after the last one, and if the task is cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(Never) -> State? { await hub.next(&position) }

        public mutating func next() async -> State? { await hub.next(&position) }
    }
}

/// Remembers the last states of a connection, for all that iterate over them.
final class StateHub<State: Sendable & Equatable>: Sendable {
    private struct Contents {
        /// Never empty; the present state is the last one.
        var recent: [State]
        /// How many there were before these.
        var dropped = 0
        var isOver = false
    }

    private let contents: Mutex<Contents>
    private let waiters = TaskWaiters()
    private let last: State?

    /// How many changes are remembered.
    private static var limit: Int { 64 }

    /// - Parameter last: the state that none follows; nil if only `finish` says that.
    init(_ first: State, last: State? = nil) {
        contents = Mutex(Contents(recent: [first]))
        self.last = last
    }

    // MARK: The connection; any thread

    /// Takes over the present state.
    /// - Parameter read: called with the lock, so that of two threads the later one is right.
    func update(_ read: () -> State) {
        add(isLast: false) { read() }
    }

    /// No state follows.
    /// - Parameter last: the last one; nil for the present one.
    func finish(_ last: State?) { add(isLast: true) { last } }

    private func add(isLast: Bool, _ read: () -> State?) {
        let isNew = contents.withLock { contents in
            guard !contents.isOver else { return false }
            let state = read()
            contents.isOver = isLast || state == last
            guard let state, state != contents.recent.last else { return contents.isOver }
            contents.recent.append(state)
            if contents.recent.count > StateHub.limit {
                contents.recent.removeFirst()
                contents.dropped += 1
            }
            return true
        }
        if isNew { waiters.resumeAll(.success(())) }
    }

    // MARK: Tasks

    /// The place of the present state.
    var position: Int { contents.withLock { $0.dropped + $0.recent.count - 1 } }

    /// - Parameters:
    ///   - position: the place of the next state; becomes that of the one after it.
    ///   - latest: whether to leave out all states but the present one.
    func next(_ position: inout Int, latest: Bool = false) async -> State? {
        while !Task.isCancelled {
            let (state, isOver) = contents.withLock { contents -> (State?, Bool) in
                let last = contents.dropped + contents.recent.count - 1
                position = max(position, contents.dropped)
                guard position <= last else { return (nil, contents.isOver) }
                if latest { position = last }
                position += 1
                return (contents.recent[position - 1 - contents.dropped], false)
            }
            if let state { return state }
            if isOver { return nil }
            let next = position
            let isWoken: Void? = try? await waiters.wait {
                contents.withLock { contents in
                    let isThere = next < contents.dropped + contents.recent.count
                    return isThere || contents.isOver ? .success(()) : nil
                }
            }
            guard isWoken != nil else { return nil }
        }
        return nil
    }
}
