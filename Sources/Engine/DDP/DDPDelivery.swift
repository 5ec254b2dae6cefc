import Documents
import Session

/// A notification on its way to the handlers, in pieces: a turn of the loop passes on as many as
/// its time allows. The handler of changes is the one that is set when the first piece is passed
/// on; once it is replaced, the rest is not wanted.
struct DDPDelivery {
    private var notification: Notification
    private let changed: ((DDPChangePiece, _ isWanted: () -> Bool) -> Void)?
    private let changedCount: Int
    /// How many elements of the notification are passed on: observers of all changes first, then
    /// changes, then live queries, then those that have ended.
    private var stage = Stage.observers
    private var next = 0
    /// How many steps of the live query's change that is next are passed on.
    private var steps = 0

    private enum Stage {
        case observers, changes, live, ended, over
    }

    /// A piece has so many changes.
    private static let piece = 256

    init(_ notification: Notification, _ handlers: DDPHandlers) {
        self.notification = notification
        (changed, changedCount) = (handlers.changed, handlers.changedCount)
    }

    /// Whether it need not be divided.
    var isShort: Bool {
        notification.changes.count <= DDPDelivery.piece
            && notification.live.allSatisfy { $0.steps.count <= DDPDelivery.piece }
    }

    var isOver: Bool { stage == .over }

    /// Passes on the next piece. The client may be closed in it.
    mutating func deliver(to client: DDPConnection) {
        switch stage {
        case .observers:
            if !notification.changes.isEmpty {
                client.shared.tellChangeObservers(notification.changes)
            }
            stage = .changes
        case .changes:
            if !deliverChanges(of: client) { (stage, next) = (.live, 0) }
        case .live:
            guard next < notification.live.count else { return (stage, next) = (.ended, 0) }
            deliverLive(to: client)
        case .ended:
            guard next < notification.ended.count else { return stage = .over }
            next += 1
            client.report(notification.ended[next - 1])
        case .over: break
        }
    }

    /// - Returns: whether more follow.
    private mutating func deliverChanges(of client: DDPConnection) -> Bool {
        let all = notification.changes.count
        let end = min(next + DDPDelivery.piece, all)
        // The first piece may be for a handler that another thread has just replaced.
        let isWanted = next == 0 ? !client.isClosed : client.isWanted(changedCount)
        if next < end, let changed, isWanted {
            let piece = DDPChangePiece(
                changes: notification.changes[next..<end], isFirst: next == 0, isLast: end == all)
            changed(piece) { client.isWanted(changedCount) }
        }
        // To free many documents at once would take long.
        if all > DDPDelivery.piece {
            for index in next..<end { notification.changes[index].forget() }
        }
        next = end
        return end < all
    }

    private mutating func deliverLive(to client: DDPConnection) {
        let change = notification.live[next]
        let end = min(steps + DDPDelivery.piece, change.steps.count)
        if client.takesPieces(change.query), steps > 0 || end < change.steps.count {
            let piece = change.piece(steps..<end)
            client.report(piece, isLast: end == change.steps.count)
            steps = end
        } else {
            client.report(change, isLast: true)
            steps = change.steps.count
        }
        guard steps >= change.steps.count else { return }
        (steps, next) = (0, next + 1)
    }
}

extension DDPConnection {
    /// Whether a handler of changes was neither replaced nor removed, and the client not closed.
    fileprivate func isWanted(_ changedCount: Int) -> Bool {
        !isClosed && sharedHandlers.current.value.changedCount == changedCount
    }
}
