/// A second parser of event streams (HTML Living Standard §9.2.6), written only to be obviously
/// correct: it has the whole body, cuts it into lines and copies freely. It shares no code with
/// Wire; if the two disagree, one of them is wrong. The fuzzer and tests use it.
package struct NaiveEventStream {
    package struct Rules: Sendable {
        /// Bytes of a line, of an event's data, of an id or a type; 0 means no limit.
        package var line = 0
        package var data = 0
        package var name = 0
        package var reportsComments = true

        package init() {}
    }

    package enum Told: Equatable, Sendable {
        case event(type: String, data: String, id: String, hadID: Bool)
        case comment(String)
        case retry(Int64)
    }

    /// Everything parsed, in order, up to the first exceeded limit or the end of the body.
    package private(set) var told: [Told] = []
    package private(set) var isTooLarge = false
    package private(set) var lastEventID: [UInt8]
    package private(set) var reconnectionTime: Int64?

    private let rules: Rules
    private var id: [UInt8]
    private var hadID = false
    private var type: [UInt8] = []
    private var data: [[UInt8]] = []

    package init(_ body: [UInt8], _ rules: Rules = Rules(), lastEventID: [UInt8] = []) {
        self.rules = rules
        self.lastEventID = lastEventID
        id = lastEventID
        var rest = body[...]
        if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest = rest.dropFirst(3) }
        while let end = rest.firstIndex(where: { $0 == 10 || $0 == 13 }) {
            take(Array(rest[..<end]), isWhole: true)
            if isTooLarge { return }
            let isPair = rest[end] == 13 && end + 1 < rest.endIndex && rest[end + 1] == 10
            rest = rest[(end + (isPair ? 2 : 1))...]
        }
        // An unfinished line is only checked for its size.
        take(Array(rest), isWhole: false)
    }

    private mutating func take(_ line: [UInt8], isWhole: Bool) {
        if line.isEmpty {
            if isWhole { dispatch() }
            return
        }
        let colon = line.firstIndex(of: 58)
        if colon == nil, !isWhole { return }
        let name = Array(line[..<(colon ?? line.count)])
        var value = Array(line[(colon.map { $0 + 1 } ?? line.count)...])
        if name.isEmpty {
            guard rules.reportsComments else { return }
            refuse(line.count, above: rules.line)
            if isWhole, !isTooLarge { told.append(.comment(text(value))) }
            return
        }
        if value.first == 32 { value.removeFirst() }
        field(String(decoding: name, as: UTF8.self), value, line.count, isWhole: isWhole)
    }

    private mutating func field(_ name: String, _ value: [UInt8], _ count: Int, isWhole: Bool) {
        guard ["data", "event", "id", "retry"].contains(name) else { return }
        refuse(count, above: rules.line)
        switch name {
        case "data":
            let joined = Array((data + [value]).joined(separator: [10]))
            refuse(joined.count, above: rules.data)
        case "event", "id": refuse(value.count, above: rules.name)
        default: break
        }
        if isTooLarge || !isWhole { return }
        switch name {
        case "data": data.append(value)
        case "event": type = value
        case "id":
            if value.contains(0) { return }
            id = value
            hadID = true
        default: retry(value)
        }
    }

    private mutating func retry(_ value: [UInt8]) {
        if value.isEmpty || value.contains(where: { $0 < 48 || $0 > 57 }) { return }
        let significant = value.drop { $0 == 48 }
        let day: Int64 = 24 * 60 * 60 * 1000
        var time = day
        if significant.count <= 9 {
            time = min(day, significant.reduce(0) { $0 * 10 + Int64($1 - 48) })
        }
        reconnectionTime = time
        told.append(.retry(time))
    }

    private mutating func dispatch() {
        lastEventID = id
        if !data.isEmpty {
            told.append(
                .event(
                    type: type.isEmpty ? "message" : text(type),
                    data: text(Array(data.joined(separator: [10]))), id: text(id), hadID: hadID))
        }
        hadID = false
        type = []
        data = []
    }

    private mutating func refuse(_ count: Int, above limit: Int) {
        if limit > 0, count > limit { isTooLarge = true }
    }

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
