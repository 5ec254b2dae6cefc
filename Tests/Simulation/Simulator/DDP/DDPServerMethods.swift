import Documents
import Session
import Wire

/// Draws the seeds of methods that were called without one.
private struct DDPServerSeeds: SeedSource {
    var random: Random

    mutating func seed() -> String {
        (0..<20).reduce(into: "") { text, _ in
            text += String(random.below(16), radix: 16)
        }
    }
}

// The methods of the server, and how they are answered.
extension DDPServer {
    func run(_ id: String, _ message: JSONValue, _ session: DDPServerSession) {
        let name = message["method"]?.stringValue ?? ""
        let isAccounts = DDPServer.accountMethods.contains(name)
        let unblocks = name == "slow" || !isAccounts && random.chance(plan.unblocking)
        if unblocks {
            session.isBusy = false
            world.after(.zero) { [self] in handleNext(session) }
        }
        world.after(delay(name == "slow" ? 20_000 : plan.slowestMethod)) { [self] in
            var run = DDPServerRun()
            var scope = RandomScope(seed: message["randomSeed"]?.stringValue)
            var seeds = DDPServerSeeds(random: random.split())
            do throws(DDPServerError) {
                let params = message["params"]?.arrayValue ?? []
                if let outcome = try performAccounts(name, params, session) {
                    run.outcome = outcome
                } else {
                    run.outcome = try perform(name, params, &scope, &seeds, &run.keys)
                }
            } catch {
                run.outcome = error.json
                run.hasFailed = true
            }
            if runs[id] != nil { world.count("resent and run twice") }
            runs[id, default: []].append(run)
            world.trace("server", "\(name) \(id): \(run.outcome)")
            world.after(delay(plan.slowestMethod)) { [self] in
                answer(id, run, session)
                guard !unblocks else { return }
                session.isBusy = false
                handleNext(session)
            }
        }
    }

    private func answer(_ id: String, _ run: DDPServerRun, _ session: DDPServerSession) {
        let word = run.hasFailed ? "error" : "result"
        let value = run.outcome == "null" ? "" : #","\#(word)":\#(run.outcome)"#
        let result = #"{"msg":"result","id":"\#(id)"\#(value)}"#
        let updated = #"{"msg":"updated","methods":["\#(id)"]}"#
        let isResultFirst = random.chance(plan.resultFirst)
        if isResultFirst {
            session.send(result)
        } else {
            show(updated, session)
        }
        world.after(random.chance(50) ? .zero : delay(plan.slowestMethod)) { [self] in
            if isResultFirst {
                show(updated, session)
            } else {
                session.send(result)
            }
        }
    }

    /// All that was written goes before.
    private func show(_ updated: String, _ session: DDPServerSession) {
        guard !session.isClosed else { return }
        refresh(session)
        session.send(updated)
    }

    // MARK: Methods

    private func perform(
        _ name: String, _ params: [JSONValue], _ scope: inout RandomScope,
        _ seeds: inout DDPServerSeeds, _ keys: inout Set<DDPServerKey>
    ) throws(DDPServerError) -> String {
        let collection = params.first?.stringValue ?? ""
        func key() -> DDPServerKey {
            DDPServerKey(collection: collection, id: wire(params[1]))
        }
        switch name {
        case "add":
            return try insert(collection, "null", fields(params[1]), &scope, &seeds, &keys)
        case "addTwo":
            for _ in 0..<2 {
                var inner = scope.nested("add")
                defer { scope.take(inner) }
                _ = try insert(collection, "null", fields(params[1]), &inner, &seeds, &keys)
            }
            return try insert(collection, "null", fields(params[1]), &scope, &seeds, &keys)
        case "edit": return update(key(), ["n": params[2].json], &keys)
        case "drop": return remove(key(), &keys)
        case "deny": throw DDPServerError(code: "403")
        case "pretend", "confused": return "\"nothing done\""
        case "remote":
            writeAnything()
            return "\"\(lastValue)\""
        case "slow": return "null"
        default: break
        }
        let words = name.split(separator: "/").map { String($0) }
        guard name.hasPrefix("/"), words.count == 2 else { throw DDPServerError(code: "404") }
        return try write(words[0], words[1], params, &scope, &seeds, &keys)
    }

    /// What the methods of a collection do.
    private func write(
        _ collection: String, _ action: String, _ params: [JSONValue],
        _ scope: inout RandomScope, _ seeds: inout DDPServerSeeds,
        _ keys: inout Set<DDPServerKey>
    ) throws(DDPServerError) -> String {
        guard action != "insert" else {
            let id = params[0]["_id"]?.json ?? "null"
            return try insert(collection, id, fields(params[0]), &scope, &seeds, &keys)
        }
        guard let id = params[0]["_id"] else { throw DDPServerError(code: "403") }
        let key = DDPServerKey(collection: collection, id: wire(id))
        guard action != "remove" else { return remove(key, &keys) }
        return update(key, fields(params[1]["$set"] ?? .null), &keys)
    }

    private func insert(
        _ collection: String, _ given: String, _ fields: DDPServerFields,
        _ scope: inout RandomScope, _ seeds: inout DDPServerSeeds,
        _ keys: inout Set<DDPServerKey>
    ) throws(DDPServerError) -> String {
        var id = given
        if id == "null" {
            let stream = "/collection/" + collection
            id = scope.withStream(stream, drawing: &seeds) { stream in
                collection == "oids"
                    ? #"{"$type":"oid","$value":"\#(stream.hexString(24))"}"# : "\"\(stream.id())\""
            }
        }
        guard let value = try? JSONValue(parsing: id) else { throw DDPServerError(code: "400") }
        let key = DDPServerKey(collection: collection, id: wire(value))
        keys.insert(key)
        guard documents[key] == nil else { throw DDPServerError(code: "409") }
        documents[key] = surprised(fields)
        changed()
        return id
    }

    private func update(
        _ key: DDPServerKey, _ fields: DDPServerFields, _ keys: inout Set<DDPServerKey>
    ) -> String {
        keys.insert(key)
        guard let old = documents[key] else { return "0" }
        documents[key] = surprised(old.merging(fields) { $1 })
        changed()
        return "1"
    }

    private func remove(_ key: DDPServerKey, _ keys: inout Set<DDPServerKey>) -> String {
        keys.insert(key)
        guard documents.removeValue(forKey: key) != nil else { return "0" }
        changed()
        return "1"
    }

    /// The server writes what the client does not expect.
    private func surprised(_ fields: DDPServerFields) -> DDPServerFields {
        guard random.chance(plan.surprising) else { return fields }
        lastValue += 1
        var fields = fields
        fields[random.pick(["by", "n", "name"])] = "\(lastValue)"
        if random.chance(30) { fields["kind"] = nil }
        return fields
    }

    private func fields(_ value: JSONValue) -> DDPServerFields {
        var fields: DDPServerFields = [:]
        for name in ["name", "n", "kind", "owner", "more"] { fields[name] = value[name]?.json }
        return fields
    }

    /// The form of an id on the wire.
    private func wire(_ id: JSONValue) -> String {
        if let hex = id["$value"]?.stringValue { return hex }
        let text = id.stringValue ?? ""
        let isMarked = text.hasPrefix("-") || text.hasPrefix("~") || text.hasPrefix("{")
        return isMarked ? "-" + text : text
    }

    // MARK: Others write

    /// Inserts, changes or removes a document, by chance.
    func writeAnything(isFirst: Bool = false, _ number: Int = 0) {
        lastValue += 1
        let collection = random.pick(DDPPlan.collections)
        let present = documents.keys.sorted().filter { $0.collection == collection }
        if isFirst || present.isEmpty || random.chance(40) {
            let name = random.pick(["x\(lastValue)", "--x", "-~1", "key \(lastValue)"])
            let hex = String(lastValue + 0x1000_0000, radix: 16)
            let id = collection == "oids" ? "0123456789abcdef" + hex : name
            documents[DDPServerKey(collection: collection, id: id)] = anyFields()
        } else {
            let key = random.pick(present)
            switch random.below(4) {
            case 0: documents[key] = nil
            case 1: documents[key] = anyFields()
            case 2: documents[key]?["n"] = "\(random.below(90))"
            default: documents[key]?[random.pick(["kind", "name", "more"])] = nil
            }
        }
        if !isFirst { changed() }
    }

    private func anyFields() -> DDPServerFields {
        var fields = ["n": "\(random.below(90))", "kind": "\(random.below(3))"]
        if random.chance(60) { fields["name"] = "\"name \(lastValue)\"" }
        if random.chance(40) { fields["owner"] = "\"\(random.pick(DDPPlan.users))\"" }
        if random.chance(30) {
            fields["more"] = random.pick([
                #"{"a":[1,{"b":null}]}"#, #"{"$date":1700000000000}"#, #"{"$binary":"AAEC"}"#,
                #"{"$escape":{"$date":5}}"#, "\"\\u00e9\"", "1.5", "true",
            ])
        }
        return fields
    }
}
