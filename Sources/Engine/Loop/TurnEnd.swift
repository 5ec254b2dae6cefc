/// Work that a loop does at the end of its turn, once for all requests of the turn: for example, to
/// wake a task once, and not for each of the messages that arrived together.
///
/// Unchecked because the loop's owner alone touches `work`.
package final class TurnEnd: LoopSource, @unchecked Sendable {
    private let loop: Loop
    private var work: (() -> Void)?

    package init(on loop: Loop) { self.loop = loop }

    /// Does `work` at the end of this turn or of the next, unless other work was requested before
    /// it. Outside the loop's thread, and after its end, does it now.
    package func request(_ work: @escaping () -> Void) {
        guard loop.isOwner, !loop.isTornDown else { return work() }
        guard self.work == nil else { return }
        self.work = work
        loop.schedule(self)
    }

    func ready(_ events: UInt32) {}

    func turn() {
        let work = work
        self.work = nil
        work?()
    }

    func loopClosed() { turn() }
}
