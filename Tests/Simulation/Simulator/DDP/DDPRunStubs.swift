import Documents
import Session
import Wire

// The stubs of the user's methods, and the calls.
extension DDPRun {
    private static let stubs: Set<String> = [
        "add", "addTwo", "edit", "drop", "pretend", "deny", "confused",
    ]

    /// A document of a collection, or one that is not there.
    private func anyID(_ collection: String) -> EJSON {
        let known = documents.mirror.keys.filter { $0.collection == collection }
        let ids = known.compactMap { $0.id.value }.sorted { $0.text < $1.text }
        guard !ids.isEmpty, !random.chance(10) else {
            let hex = ObjectID(hex: "00000000000000000000000\(random.below(10))")
            return collection == "oids" ? hex.map { .objectID($0) } ?? .null : .string("nobody")
        }
        return random.pick(ids)
    }

    private func anyFields() -> EJSON {
        var fields = EJSONObject()
        fields["n"] = .number(Double(random.below(90)))
        fields["kind"] = .number(Double(random.below(3)))
        if random.chance(50) { fields["owner"] = .string(random.pick(DDPPlan.users)) }
        if random.chance(20) { fields["more"] = .date(5) }
        return .object(fields)
    }

    private static func set(_ value: EJSON) -> EJSON {
        var fields = EJSONObject()
        fields["n"] = value
        var modifier = EJSONObject()
        modifier["$set"] = .object(fields)
        return .object(modifier)
    }

    private static func options(_ plan: DDPPlan.Call) -> DDPCallOptions {
        var options = DDPCallOptions()
        options.isWait = plan.isWait
        options.noRetry = plan.noRetry
        options.throwsStubErrors = plan.throwsStubErrors
        options.timeout = plan.timeout
        return options
    }

    private func taint(_ collection: String, _ id: EJSON) {
        guard let id = DocumentID(id) else { return }
        documents.stubWrites(DocumentKey(collection: collection, id: id))
    }

    // MARK: Calls

    func makeCall(_ plan: DDPPlan.Call) {
        let collection = random.pick(DDPPlan.collections)
        var params: [EJSON] = [.string(collection)]
        switch plan.name {
        case "add", "addTwo": params.append(anyFields())
        default: params += [anyID(collection), .number(Double(random.below(90)))]
        }
        let request = DDPRequest(plan.name, params, DDPRun.options(plan))
        world.trace("user", "call \(plan) \(params.map { $0.text })")
        call { session in
            do throws(DDPError) {
                let made: DDPCall
                if DDPRun.stubs.contains(plan.name) {
                    session.beginStub(now: world.now)
                    let outcome = runStub(plan.name, params, &session)
                    made = try session.call(request, outcome, now: world.now)
                } else {
                    made = try session.call(request, drawing: &ids, now: world.now)
                }
                calls.made(made.id, plan, value: made.value, goesFirst: isGreeting)
            } catch {
                world.require(
                    plan.throwsStubErrors && plan.name == "confused", "\(plan.name) has thrown")
                world.count("stub threw")
            }
        }
    }

    private func runStub(
        _ name: String, _ params: [EJSON], _ session: inout DDPSession
    ) -> DDPStubOutcome {
        guard case .string(let collection) = params[0] else { return .success(.null) }
        do throws(DDPError) {
            switch name {
            case "add": return .success(try add(collection, params[1], &session))
            case "addTwo":
                for _ in 0..<2 {
                    session.enterStub("add")
                    _ = try add(collection, params[1], &session)
                    session.leaveStub()
                }
                world.count("nested")
                return .success(try add(collection, params[1], &session))
            case "drop":
                taint(collection, params[1])
                return .success(.number(Double(try session.removeInStub(collection, params[1]))))
            case "pretend":
                taint(collection, params[1])
                _ = try session.removeInStub(collection, params[1])
                return .success(try add(collection, .object(EJSONObject()), &session))
            default:
                taint(collection, params[1])
                let count = try session.updateInStub(
                    collection, params[1], DDPRun.set(params[2]))
                if name == "confused" {
                    throw DDPError(.stub, "confused", reason: "on purpose")
                }
                return .success(.number(Double(count)))
            }
        } catch {
            return .failure(error)
        }
    }

    private func add(
        _ collection: String, _ fields: EJSON, _ session: inout DDPSession
    ) throws(DDPError) -> EJSON {
        let id = try session.insertInStub(collection, fields, drawing: &ids)
        taint(collection, id)
        let key = DocumentID(id).map { DocumentKey(collection: collection, id: $0) }
        world.require(
            key.flatMap { session.store.document($0) } != nil, "a stub does not see its document")
        return id
    }

    // MARK: Writing to collections

    func insert(_ collection: String) {
        guard case .object(var document) = anyFields() else { return }
        if random.chance(30) { document["_id"] = anyID(collection) }
        write("insert") { session throws(DDPError) in
            try session.insert(collection, .object(document), drawing: &ids, now: world.now)
        } tainting: { made in
            taint(collection, made.value)
        }
    }

    func update(_ collection: String) {
        let id = anyID(collection)
        let modifier = DDPRun.set(.number(Double(random.below(90))))
        taint(collection, id)
        write("update") { session throws(DDPError) in
            try session.update(collection, id: id, modifier, drawing: &ids, now: world.now)
        }
    }

    func remove(_ collection: String) {
        let id = anyID(collection)
        taint(collection, id)
        write("remove") { session throws(DDPError) in
            try session.remove(collection, id: id, drawing: &ids, now: world.now)
        }
    }

    private func write(
        _ name: String, _ body: (inout DDPSession) throws(DDPError) -> DDPCall,
        tainting: (DDPCall) -> Void = { _ in }
    ) {
        world.trace("user", name)
        call { session in
            do throws(DDPError) {
                let made = try body(&session)
                calls.made(made.id, DDPPlan.Call(name: name), value: made.value)
                tainting(made)
            } catch {
                world.fail("\(name) has thrown \(error)")
            }
        }
    }
}
