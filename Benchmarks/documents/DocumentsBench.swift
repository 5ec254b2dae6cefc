import Documents
import Foundation
import Wire

/// `documents-bench [COUNT [load|find|change|wide …]]` measures reading, storing and querying
/// documents, without a network, beside reading the same frames as JSON alone. Build it with
/// `-c release`.
@main
struct DocumentsBench {
    static func main() {
        let words = CommandLine.arguments.dropFirst()
        let count = words.first.flatMap { Int($0) } ?? 100_000
        let given = Array(words.dropFirst())
        let parts = given.isEmpty ? ["load", "find", "change", "wide"] : given
        let frames = Frames(count: count)
        // First, while the heap has no gaps.
        let before = residentBytes()
        var store = DocumentStore()
        load(frames, into: &store)
        let overhead = Double(residentBytes() - before - frames.dataBytes) / Double(count)
        print("memory above its own data: \(Int(overhead)) bytes a document")
        if parts.contains("load") { measureLoading(frames, count) }
        if parts.contains("find") { find(in: store, count) }
        if parts.contains("change") {
            change(one: 10_000)
            change(one: count)
        }
        if parts.contains("wide") { for count in [2_000, 20_000] { wide(count) } }
    }

    // MARK: Loading

    private static func measureLoading(_ frames: Frames, _ count: Int) {
        let floor = best { readJSON(frames) } / Double(count)
        row("JSONDocument reads a frame", floor)
        row("a frame becomes a message", best { readMessages(frames) } / Double(count), floor)
        var store = DocumentStore()
        // A client keeps its documents, so freeing them is not a part of loading.
        let loading = best(after: { store = DocumentStore() }) { load(frames, into: &store) }
        row("and a document in the store", loading / Double(count), floor)
    }

    private static func readJSON(_ frames: Frames) {
        var document = JSONDocument()
        frames.each { frame in
            let isMessage = try? document.read(frame) { $0.member("msg") != nil }
            precondition(isMessage == true)
        }
    }

    private static func readMessages(_ frames: Frames) {
        var reader = DDPReader()
        frames.each { frame in
            guard case .message(.document) = reader.read(frame) else { fatalError("no document") }
        }
    }

    /// As a client does while documents arrive without a pause: it applies many at once.
    private static func load(_ frames: Frames, into store: inout DocumentStore) {
        var reader = DDPReader()
        var waiting = 0
        frames.each { frame in
            guard case .message(.document(let message)) = reader.read(frame),
                case .added(let fields) = message.change
            else { fatalError("no document") }
            let key = DocumentKey(collection: message.collection, id: message.id)
            precondition(store.buffer(.added(fields), for: key))
            waiting += 1
            guard waiting == 10_000 else { return }
            waiting = 0
            _ = store.flush()
        }
        _ = store.flush()
    }

    // MARK: Queries

    private static func find(in store: DocumentStore, _ count: Int) {
        let texts = [
            "one field": #"{"n": 77}"#,
            "three fields": #"{"n": {"$gte": 10}, "done": false, "owner.name": "Ada"}"#,
        ]
        for (name, text) in texts.sorted(by: { $0.key < $1.key }) {
            let query = query(text)
            let time = best { found(try? store.find(query, in: "items")) }
            row("a selector of \(name), a document", time / Double(count))
        }
        let sorted = query("{}", #"{"sort": {"n": 1, "title": -1}}"#)
        var store = store
        let time = best { store.stopObserving(found(try? store.observe(sorted, in: "items")).id) }
        row("first result of a sorted live query, a document", time / Double(count))
    }

    private static func change(one count: Int) {
        var store = DocumentStore()
        load(Frames(count: count), into: &store)
        let query = query("{}", #"{"sort": {"n": 1, "title": -1}}"#)
        found(try? store.observe(query, in: "items"))
        let ids = store.documents(in: "items").map { $0.id }
        for (name, field) in [("stays", "title"), ("moves", "n")] {
            let changes = 20_000
            var number = 0
            let time = best {
                for _ in 0..<changes {
                    number += 1
                    var fields = EJSONObject()
                    let place = (number &* 7919) % count
                    // Each value is another one than before, in all five runs.
                    fields[field] =
                        field == "n"
                        ? .number(Double(number % 1_009))
                        : .string("title \(number)")
                    let key = DocumentKey(collection: "items", id: ids[place])
                    _ = store.buffer(.changed(fields: fields, cleared: []), for: key)
                    _ = store.flush()
                }
            }
            row("one change, the entry \(name), \(count) sorted", time / Double(changes))
        }
    }

    /// A query's result, which is never refused here.
    @discardableResult
    static func found<Result>(_ result: Result?) -> Result {
        guard let result else { fatalError("the query takes too long") }
        return result
    }

    private static func query(_ selector: String, _ options: String = "null") -> Query {
        do {
            return try Query(
                selector: EJSON(parsing: selector), options: EJSON(parsing: options))
        } catch {
            fatalError(error.message)
        }
    }

    // MARK: Measuring

    /// The shortest of five runs, in CPU seconds.
    /// - Parameter prepare: before each run, not measured.
    static func best(after prepare: () -> Void = {}, _ work: () -> Void) -> Double {
        var best = Double.infinity
        for _ in 0..<5 {
            prepare()
            let start = cpuSeconds()
            work()
            best = min(best, cpuSeconds() - start)
        }
        return best
    }

    private static func cpuSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// The memory that the process uses.
    private static func residentBytes() -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    static func row(_ name: String, _ seconds: Double, _ floor: Double? = nil) {
        let ratio = floor.map { String(format: "  %.2f x", seconds / $0) } ?? ""
        let name = name.padding(toLength: 56, withPad: " ", startingAt: 0)
        print(name + String(format: "%9.0f ns", seconds * 1e9) + ratio)
    }
}

/// Messages of a server that sends many documents of five fields.
private struct Frames {
    private var text: [UInt8] = []
    private var ends: [Int] = []
    /// What the documents themselves need: ids, names of fields, and values.
    private(set) var dataBytes = 0

    init(count: Int) {
        var random = RandomStream(seeds: ["documents-bench"])
        for number in 0..<count {
            let id = random.id()
            let title = "item \(number) \(random.id(12))"
            let n = random.index(below: 1000)
            let owner = ["Ada", "Grace", "Barbara", "Edsger"][number % 4]
            let at = 1_700_000_000_000 + number
            let message =
                #"{"msg":"added","collection":"items","id":"\#(id)","fields":{"title":"\#(title)","#
                + #""n":\#(n),"done":\#(number % 3 == 0),"owner":{"name":"\#(owner)"},"#
                + #""at":{"$date":\#(at)}}}"#
            text += Array(message.utf8)
            ends.append(text.count)
            dataBytes += id.utf8.count + title.utf8.count + owner.utf8.count
            dataBytes += "titlendoneownernameat".utf8.count + 8 + 1 + 8
        }
    }

    func each(_ body: (UnsafeRawBufferPointer) -> Void) {
        text.withUnsafeBytes { text in
            var start = 0
            for end in ends {
                body(UnsafeRawBufferPointer(rebasing: text[start..<end]))
                start = end
            }
        }
    }
}
