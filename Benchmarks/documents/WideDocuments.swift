import Documents
import Wire

/// Queries and modifiers with many values, and documents with many fields. Each takes time about
/// proportional to its size: the time of one value is the same for few and for many.
extension DocumentsBench {
    static func wide(_ count: Int) {
        let names = (0..<count).map { "field\($0)" }
        let document = EJSONObject(names.map { ($0, .number(1)) })
        let id = key(0).id
        let ones = EJSON.object(document)
        let targets = EJSON.object(EJSONObject(names.map { ($0, .string("new" + $0)) }))
        let values = EJSON.array((0..<count).map { .number(Double($0)) })
        let list: EJSONObject = ["list": values]
        let zeros = EJSON.object(EJSONObject(names.map { ($0, .number(0)) }))
        func modify(_ name: String, _ modifier: EJSON, _ fields: EJSONObject) {
            let time = best {
                guard let modifier = try? Modifier(modifier, now: 0),
                    (try? modifier.apply(to: fields, id: id)) != nil
                else { fatalError("\(name) fails") }
            }
            row("\(name) of \(count), each", time / Double(count))
        }
        modify("$set", ["$set": ones], document)
        modify("$set of new fields", ["$set": ones], EJSONObject())
        modify("$unset", ["$unset": ones], document)
        modify("$rename", ["$rename": targets], document)
        modify("$addToSet", ["$addToSet": ["list": ["$each": values]]], list)
        modify("$pullAll", ["$pullAll": ["list": values]], list)
        modify("$pull with $in", ["$pull": ["list": ["$in": values]]], list)
        for (name, rules) in [("including", ones), ("excluding", zeros)] {
            let time = best {
                guard let projection = try? Projection(rules) else { fatalError("no projection") }
                _ = projection.apply(document)
            }
            row("a projection \(name) \(count) fields, each", time / Double(count))
        }
        find(count)
    }

    private static func key(_ number: Int) -> DocumentKey {
        guard let id = DocumentID(.string("id \(number)")) else { fatalError("no id") }
        return DocumentKey(collection: "wide", id: id)
    }

    private static func find(_ count: Int) {
        var store = DocumentStore()
        for number in 0..<count {
            _ = store.buffer(.added(["n": .number(Double(number))]), for: key(number))
        }
        _ = store.flush()
        let ids = (0..<count).map { EJSON.string("id \($0)") }
        let selectors: [(String, EJSON)] = [
            ("$in", ["_id": ["$in": .array(ids)]]), ("$nin", ["_id": ["$nin": .array(ids)]]),
            ("$or", ["$or": .array(ids.map { ["_id": $0] })]),
        ]
        for (name, selector) in selectors {
            let time = best {
                guard let query = try? Query(selector: selector) else { fatalError("no query") }
                DocumentsBench.found(try? store.find(query, in: "wide"))
            }
            row("\(name) of \(count) ids over as many documents, each", time / Double(count))
        }
    }
}
