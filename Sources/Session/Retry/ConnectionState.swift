/// The state of any connection object, with the numbers of the C ABI. The words that Swift and
/// Python show follow from it: those of the protocol's other clients.
package enum ConnectionState: Int32, Sendable {
    case idle = 0
    case connecting = 1
    case open = 2
    case waiting = 3
    case closing = 4
    case closed = 5
}
