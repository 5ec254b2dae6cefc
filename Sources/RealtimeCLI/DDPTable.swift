import Dispatch
import Glibc
import Realtime
import Synchronization

/// The documents of a live query as a table on the terminal, drawn again after each change, and
/// when the terminal gets another size.
final class DDPTable: Sendable {
    private struct State {
        /// Reads the documents; nil before the beginning and after the end.
        var read: (@Sendable () -> [DDPDocument])?
        /// Made again for each drawing.
        var remark: @Sendable () -> String = { "connecting" }
        /// What the remark counts down to.
        var due: ContinuousClock.Instant?
        var isTicking = false
        /// Other collections that have got documents.
        var others: Set<String> = []
        /// The initial documents are there.
        var isComplete = false
        /// A drawing is due.
        var isDue = false
    }

    private let query: DDPQuery
    private let state = Mutex(State())
    /// Everything is drawn here.
    private let queue = DispatchQueue(label: "table")
    /// The terminal's new size, and Ctrl-Z. Dispatch sources are not declared Sendable, although
    /// any thread may use them.
    private nonisolated(unsafe) let signals: [any DispatchSourceSignal]

    /// Changes that come faster are drawn together.
    private static let interval = DispatchTimeInterval.milliseconds(30)

    init(_ query: DDPQuery) {
        self.query = query
        let queue = queue
        signals = [SIGWINCH, SIGTSTP].map {
            DispatchSource.makeSignalSource(signal: $0, queue: queue)
        }
        signals[0].setEventHandler { [weak self] in self?.draw() }
        signals[1].setEventHandler { [weak self] in self?.pause() }
        signal(SIGTSTP, SIG_IGN)
        for each in signals { each.activate() }
    }

    deinit {
        for each in signals { each.cancel() }
        signal(SIGTSTP, SIG_DFL)
    }

    /// Shows the table.
    func begin(_ read: @escaping @Sendable () -> [DDPDocument]) {
        queue.sync { Screen.enter() }
        state.withLock { $0.read = read }
        update()
    }

    /// Shows a remark on the first line, until the next one. nil means that all is well.
    func say(_ remark: String?) {
        state.withLock { state in
            let remark = remark ?? (state.isComplete ? "" : "waiting for the initial documents")
            state.remark = { remark }
            state.due = nil
        }
        update()
    }

    /// Shows a remark that counts down.
    /// - Parameter remark: receives the seconds that are left.
    func say(in time: Duration, _ remark: @escaping @Sendable (Int) -> String) {
        let due = ContinuousClock.now + time
        state.withLock { state in
            state.due = due
            state.remark = {
                let left = max(.zero, ContinuousClock.now.duration(to: due))
                return remark(Int((left / .seconds(1)).rounded(.up)))
            }
        }
        update()
    }

    /// Documents of another collection have arrived. A publication's name need not be that of its
    /// collection.
    func sees(_ collection: String) {
        let isNew = state.withLock { $0.others.insert(collection).inserted }
        if isNew { update() }
    }

    /// The initial documents are there.
    func isComplete() {
        state.withLock { $0.isComplete = true }
        say(nil)
    }

    /// Draws the table soon.
    func update() {
        let isFirst = state.withLock { state in
            defer { state.isDue = true }
            return !state.isDue
        }
        guard isFirst else { return }
        queue.asyncAfter(deadline: .now() + DDPTable.interval) { [weak self] in self?.draw() }
    }

    /// Leaves the table on the screen, below what was there before it; but no empty table that may
    /// only be empty because the documents never came.
    func end() {
        let (read, isComplete) = state.withLock { state in
            defer { state.read = nil }
            return (state.read, state.isComplete)
        }
        guard let read else { return }
        queue.sync {
            Screen.leave()
            let documents = read()
            guard isComplete || !documents.isEmpty else { return }
            let size = Screen.size
            // The line after it is the shell's.
            let lines = lines(documents, width: size.columns, height: max(1, size.rows - 1))
            Screen.write(lines.map { "\($0)\n" })
        }
    }

    /// Gives the terminal back while the process is stopped.
    private func pause() {
        Screen.leave()
        kill(getpid(), SIGSTOP)
        guard state.withLock({ $0.read != nil }) else { return }
        Screen.enter()
        draw()
    }

    private func draw() {
        let (read, remark, due, others) = state.withLock { state in
            state.isDue = false
            return (state.read, state.remark, state.due, state.others)
        }
        guard let read else { return }
        let documents = read()
        var text = remark()
        if text.isEmpty, documents.isEmpty, !others.isEmpty {
            let names = others.sorted().prefix(3).joined(separator: ", ")
            text = "others are in \(names); see --collection"
        }
        let size = Screen.size
        Screen.draw(lines(documents, text, width: size.columns, height: size.rows))
        if let due, ContinuousClock.now < due { tick() }
    }

    /// Draws the table again in a second.
    private func tick() {
        let isFirst = state.withLock { state in
            defer { state.isTicking = true }
            return !state.isTicking
        }
        guard isFirst else { return }
        queue.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in
            self?.state.withLock { $0.isTicking = false }
            self?.draw()
        }
    }

    /// A title, the names of the columns, and a line for each document. The last column of the
    /// screen stays empty: what follows a character there erases it on many terminals.
    private func lines(
        _ documents: [DDPDocument], _ remark: String = "", width: Int, height: Int
    ) -> [String] {
        let width = max(1, width - 1)
        let count = documents.count == 1 ? "1 document" : "\(documents.count) documents"
        let title = "\(query.collection): \(count)\(remark.isEmpty ? "" : " · \(remark)")"
        // A line for a document is worth more than one that counts the others, or the names.
        let room = max(1, height - 2)
        let isCut = documents.count > room && room > 1
        let visible = documents.prefix(isCut ? room - 1 : room)
        let columns = columns(of: visible)
        let names = height == 2 ? [] : [columns.map { $0.oneLine }]
        let rows = names + visible.map { row in columns.map { row[$0]?.shown ?? "" } }
        var lines = [TextTable.cut(title.oneLine, to: width)]
        if !documents.isEmpty { lines += TextTable.lines(rows, width: width) }
        if isCut {
            lines.append(TextTable.cut("… \(documents.count - visible.count) more", to: width))
        }
        return Array(lines.prefix(height))
    }

    /// The id, and the fields that were asked for or that occur.
    private func columns(of documents: ArraySlice<DDPDocument>) -> [String] {
        var columns = ["_id"]
        if let wanted = query.columns { return columns + wanted.filter { $0 != "_id" } }
        var seen = Set(columns)
        for document in documents {
            for field in document.fields.fields where seen.insert(field.name).inserted {
                columns.append(field.name)
            }
        }
        return columns
    }
}

extension EJSON {
    /// For people, in one line: texts without quotes, dates as RFC 3339.
    var shown: String {
        switch self {
        case .string(let text): text.oneLine
        case .objectID(let id): id.hex
        case .date(let milliseconds): EJSON.date(milliseconds)
        case .null, .bool, .number, .array, .object, .bytes, .decimal, .pattern, .custom:
            text.oneLine
        }
    }

    private static func date(_ milliseconds: Int64) -> String {
        var seconds = time_t(milliseconds / 1000)
        var parts = tm()
        guard milliseconds >= 0, gmtime_r(&seconds, &parts) != nil else {
            return "\(milliseconds) ms"
        }
        func digits(_ number: Int32, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        let day =
            "\(digits(parts.tm_year + 1900, 4))-\(digits(parts.tm_mon + 1, 2))-"
            + digits(parts.tm_mday, 2)
        return "\(day)T\(digits(parts.tm_hour, 2)):\(digits(parts.tm_min, 2)):"
            + "\(digits(parts.tm_sec, 2))Z"
    }
}
