/// A machine that returns its decisions as actions, in order, from a method `nextAction`. Its
/// driver performs them one after the other, arms a timer for `wakeUp`, and calls `timeReached`
/// when it expires.
package protocol ActionMachine {
    /// When `timeReached` should be called; nil for never.
    var wakeUp: Instant? { mutating get }
    mutating func timeReached(_ now: Instant)
}

/// A decision of a machine.
package enum MachineAction<Command: Sendable, Report: Sendable>: Sendable {
    /// The driver does it.
    case command(Command)
    /// The application's handler gets it.
    case report(Report)
}
