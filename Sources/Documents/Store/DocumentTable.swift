internal import Wire

/// The documents of one collection by id, and their natural order.
///
/// The order is that of insertion: a document that is removed and inserted again goes to the end,
/// one that is changed or replaced keeps its place. Each document has a rank; ranks grow along the
/// order, so that an ordered list finds its entries by rank.
///
/// Positions of slots stay valid until `finish`, so a removed document keeps its slot that long.
struct DocumentTable: Sendable {
    struct Slot: Sendable {
        /// nil: the slot is not in use any more.
        fileprivate(set) var id: DocumentID?
        /// nil: the document is removed.
        var fields: EJSONObject?
        fileprivate(set) var rank: Int64
        fileprivate let hash: UInt32
        /// The number of its record in the transaction's log, from 1; 0 if it has none.
        var touch: Int32 = 0
    }

    private(set) var slots: [Slot] = []
    /// The count is a power of two.
    private var cells: [Cell] = []
    /// Cells that are not vacant.
    private var usedCells = 0
    /// Slots that hold a document.
    private(set) var count = 0
    private var lastRank: Int64 = 0
    /// Of the last document that got or lost a field.
    private var namesAfterMerge = SharedFieldNames()
    /// Whether the slots are not in the order of their ranks.
    private var isShuffled = false
    /// Exists while a transaction places documents before others.
    private(set) var order: NaturalOrder?

    /// Leaves room between two documents for others that a server places there.
    static let rankDistance: Int64 = 1 << 24

    /// The position of a slot with the hash of its id, so that a search looks only at slots that
    /// it probably wants.
    private struct Cell: Sendable {
        let position: Int32
        let hash: UInt32

        static let vacant = Cell(position: -1, hash: 0)
        static let vacated = Cell(position: -2, hash: 0)

        var isVacant: Bool { position == -1 }
    }

    init() {}

    // MARK: Reading

    /// The slot of a document that is there, or was removed in this transaction.
    func position(of id: DocumentID) -> Int? {
        cell(of: id, DocumentTable.hash(id)).map { Int(cells[$0].position) }
    }

    /// Where a document is, or where it would be inserted.
    struct Place {
        /// The slot of a document that is there, or was removed in this transaction.
        let position: Int?
        fileprivate let cell: Int?
        fileprivate let hash: UInt32
    }

    /// Mutating, because the compiler copies an array's element to call any other function of it.
    mutating func place(of id: DocumentID) -> Place {
        let hash = DocumentTable.hash(id)
        let cell = cell(of: id, hash)
        return Place(position: cell.map { Int(cells[$0].position) }, cell: cell, hash: hash)
    }

    func fields(of id: DocumentID) -> EJSONObject? {
        position(of: id).flatMap { slots[$0].fields }
    }

    /// The documents in their natural order.
    var documents: Documents { Documents(slots: isShuffled ? ranked.map { slots[$0] } : slots) }

    struct Documents: Sequence, IteratorProtocol {
        fileprivate let slots: [Slot]
        private var position = 0

        fileprivate init(slots: [Slot]) { self.slots = slots }

        mutating func next() -> (DocumentID, EJSONObject)? {
            while position < slots.count {
                defer { position += 1 }
                if let fields = slots[position].fields, let id = slots[position].id {
                    return (id, fields)
                }
            }
            return nil
        }
    }

    // MARK: Changing

    /// Inserts a document that is not there at the end.
    /// - Returns: its slot. `previous` is the slot that it had in this transaction, which is empty
    ///   now.
    mutating func append(
        _ id: DocumentID, _ fields: consuming EJSONObject, at place: Place
    ) -> (position: Int, previous: Int?) {
        let position = slots.count
        lastRank += DocumentTable.rankDistance
        slots.append(Slot(id: id, fields: fields, rank: lastRank, hash: place.hash))
        let previous = place.position
        if let cell = place.cell, let previous {
            slots[position].touch = slots[previous].touch
            slots[previous].id = nil
            slots[previous].touch = 0
            cells[cell] = Cell(position: Int32(position), hash: place.hash)
        } else {
            if (usedCells + 1) * 4 > cells.count * 3 { rebuildCells() } else { enter(position) }
        }
        count += 1
        order?.append(position)
        return (position, previous)
    }

    mutating func remove(at position: Int) {
        slots[position].fields = nil
        count -= 1
        order?.remove(position)
    }

    /// - Parameter fields: of a document that is there.
    mutating func replace(at position: Int, _ fields: EJSONObject) {
        slots[position].fields = fields
    }

    /// Merges fields into a document that is there.
    /// - Returns: as `EJSONObject.merge`.
    mutating func merge(
        at position: Int, _ fields: EJSONObject, cleared: [String]
    ) -> Int? {
        let count = slots[position].fields?.count
        let growth = slots[position].fields?.merge(fields, cleared: cleared)
        if !cleared.isEmpty || slots[position].fields?.count != count {
            slots[position].fields?.shareNames(with: &namesAfterMerge)
        }
        return growth
    }

    mutating func setTouch(_ touch: Int, at position: Int) {
        slots[position].touch = Int32(truncatingIfNeeded: touch)
    }

    /// Gives a slot the fields and the place that its document had in this transaction.
    mutating func restore(at position: Int, _ fields: EJSONObject, rank: Int64) {
        if slots[position].fields == nil {
            count += 1
            order?.restore(position)
        }
        slots[position].fields = fields
        if slots[position].rank != rank, order == nil {
            slots[position].rank = rank
            isShuffled = true
        }
    }

    // MARK: Order

    /// Places a document that is there before another one; at the end if that is nil or not there.
    mutating func place(_ position: Int, before id: DocumentID?) {
        if order == nil { order = NaturalOrder(ranked, slots: slots.count) }
        let target = id.flatMap { self.position(of: $0) }.flatMap {
            slots[$0].fields == nil ? nil : $0
        }
        guard target != position else { return }
        order?.place(position, before: target)
    }

    /// The ranks that documents need because they were placed. Ends the placing.
    mutating func takeNewRanks() -> [(position: Int, rank: Int64)] {
        guard let order else { return [] }
        self.order = nil
        return order.newRanks(ranks: slots.map { $0.rank }, lastRank: &lastRank)
    }

    mutating func setRank(_ rank: Int64, at position: Int) {
        slots[position].rank = rank
        isShuffled = true
    }

    /// Positions of the documents in their order.
    private var ranked: [Int] {
        let positions = slots.indices.filter { slots[$0].fields != nil }
        return isShuffled ? positions.sorted { slots[$0].rank < slots[$1].rank } : positions
    }

    // MARK: The end of a transaction

    /// Ends the record of a slot; a removed document's slot is given up.
    mutating func endTouch(at position: Int) {
        slots[position].touch = 0
        guard slots[position].fields == nil, let id = slots[position].id else { return }
        if let cell = cell(of: id, slots[position].hash) { cells[cell] = .vacated }
        slots[position].id = nil
    }

    /// Puts the slots in order, and gives up unused ones if they are many.
    /// - Returns: whether positions have changed.
    mutating func finish() -> Bool {
        guard isShuffled || slots.count > 16 && slots.count > 2 * count else { return false }
        slots = ranked.map { slots[$0] }
        isShuffled = false
        rebuildCells()
        return true
    }

    // MARK: Cells

    private func cell(of id: DocumentID, _ hash: UInt32) -> Int? {
        guard !cells.isEmpty else { return nil }
        let mask = cells.count - 1
        var cell = Int(hash) & mask
        while !cells[cell].isVacant {
            if cells[cell].hash == hash, cells[cell].position >= 0,
                slots[Int(cells[cell].position)].id == id
            {
                return cell
            }
            cell = (cell + 1) & mask
        }
        return nil
    }

    private mutating func enter(_ position: Int) {
        let mask = cells.count - 1
        let hash = slots[position].hash
        var cell = Int(hash) & mask
        while !cells[cell].isVacant { cell = (cell + 1) & mask }
        cells[cell] = Cell(position: Int32(position), hash: hash)
        usedCells += 1
    }

    /// At most half of the cells are used then.
    private mutating func rebuildCells() {
        let positions = slots.indices.filter { slots[$0].id != nil }
        var size = 8
        while size < 2 * positions.count { size *= 2 }
        cells = Array(repeating: .vacant, count: size)
        usedCells = 0
        for position in positions { enter(position) }
    }

    /// Each process seeds its hashes differently, so a peer cannot choose ids that collide.
    private static func hash(_ id: DocumentID) -> UInt32 {
        var hasher = Hasher()
        id.hash(into: &hasher)
        return UInt32(truncatingIfNeeded: hasher.finalize())
    }
}
