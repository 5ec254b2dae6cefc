internal import Documents
internal import Wire

// The memory that changes take while they wait for a handler, for the limit at which the server is
// slowed down.

extension ListChange {
    var storedBytes: Int {
        switch self {
        case .added(_, let fields, _), .changed(_, let fields, _): fields.storedBytes
        case .moved, .removed: 0
        }
    }
}

extension DocumentChange {
    /// Both versions are kept, but the old one of a document that is there shares most of it.
    var storedBytes: Int { (after ?? before)?.storedBytes ?? 0 }
}

extension [ListChange] {
    var storedBytes: Int { reduce(0) { $0 + $1.storedBytes } }
}

extension LiveBatch {
    var storedBytes: Int { steps.reduce(0) { $0 + ($1.new?.storedBytes ?? 0) } }
}
