/// A machine that says what is to be done as actions, in order, by a method `nextAction`. Its
/// driver performs one after the other, arms a timer for `wakeUp`, and calls `timeReached` at that
/// time.
package protocol ActionMachine {
    /// When it wants to be called; nil for never.
    var wakeUp: Instant? { mutating get }
    mutating func timeReached(_ now: Instant)
}
