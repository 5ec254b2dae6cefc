internal import Documents
internal import Engine

/// Gathers the pieces of changes that were made together, because handlers get all of them at once.
///
/// Unchecked because only the loop's thread uses it.
final class GatheredChanges: @unchecked Sendable {
    private var changes: [DocumentChange] = []
    private var bytes = 0

    /// - Returns: all changes, and the estimate of their memory, with the last piece.
    func add(_ piece: DDPChangePiece) -> (changes: [DocumentChange], bytes: Int)? {
        if piece.isFirst { (changes, bytes) = ([], 0) }
        changes += piece.changes
        bytes += piece.changes.reduce(0) { $0 + $1.storedBytes }
        guard piece.isLast else { return nil }
        defer { (changes, bytes) = ([], 0) }
        return (changes, bytes)
    }
}
