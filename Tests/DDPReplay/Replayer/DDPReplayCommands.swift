import Documents
import Session
import Wire

/// A call as a scenario describes it.
struct DDPReplayCall {
    let tag: String
    var request: DDPRequest
    let returnsStubValue: Bool

    init(_ node: JSONNode) throws(RealtimeError) {
        tag = node.text("tag")
        request = DDPRequest(node.text("name"), try node.values("params"))
        let options = node.member("options")
        func isSet(_ name: StaticString) -> Bool { options?.member(name)?.bool ?? false }
        request.options.isWait = isSet("wait")
        request.options.noRetry = isSet("noRetry")
        request.options.throwsStubErrors = isSet("throwStubErrors")
        returnsStubValue = isSet("returnStubValue")
    }
}

extension DDPReplay {
    mutating func run(_ command: JSONNode) throws(RealtimeError) {
        let tag = command.text("tag")
        switch command.text("do") {
        case "collection":
            session.declare(
                command.text("name"),
                ids: command.text("ids") == "objectId" ? .objectIDs : .strings)
        case "stub":
            if let operations = command.member("ops") {
                stubs[command.text("name")] = DDPReplayStub(operations: operations)
            }
        case "open": try open()
        case "lost": lost()
        case "recv": if let message = command.member("msg") { receive(message.source) }
        case "raw": command.member("text")?.withString { receive($0) }
        case "call": try make(DDPReplayCall(command))
        case "insert", "update", "remove": try write(command, tag)
        case "sub":
            let handle = session.subscribe(
                command.text("name"), try command.values("params"),
                keep: .milliseconds(command.member("keep")?.integer ?? 0), drawing: &source,
                now: now)
            handles[tag] = handle
            subscriptionTags[handle] = tag
        case "release": if let handle = handles[tag] { session.release(handle, now: now) }
        case "isReady":
            let isReady = handles[tag].map { session.isReady($0) } ?? false
            emit("isReady", ["tag": .string(tag), "value": .bool(isReady)])
        case "onReconnect":
            hook = []
            if let calls = command.member("calls") {
                for call in calls.elements { hook.append(try DDPReplayCall(call)) }
            }
        case "userId": session.setUserID(command.member("id")?.string, now: now)
        case "find":
            let found = try session.store.find(
                try query(command), in: command.text("collection"))
            emit("found", ["tag": .string(tag), "docs": .array(found.map { $0.document })])
        case "observe":
            let (id, found) = try session.store.observe(
                try query(command), in: command.text("collection"))
            queryTags[id] = tag
            for entry in found {
                emit(.added(id: entry.id, fields: entry.fields, before: nil), tag)
            }
        case "unobserve":
            for (id, name) in queryTags where name == tag {
                session.store.stopObserving(id)
                queryTags[id] = nil
            }
        case "advance": advance(.milliseconds(command.member("ms")?.integer ?? 0))
        case let name:
            throw RealtimeError(.invalidArgument, "the command \(name) is unknown")
        }
    }

    private func query(_ command: JSONNode) throws(RealtimeError) -> Query {
        try Query(selector: try command.value("selector"), options: try command.value("options"))
    }

    private mutating func write(_ command: JSONNode, _ tag: String) throws(RealtimeError) {
        let collection = command.text("collection")
        let id = try command.value("id")
        do throws(DDPError) {
            let call =
                switch command.text("do") {
                case "insert":
                    try session.insert(
                        collection, document(command), drawing: &source, now: now)
                case "update":
                    try session.update(
                        collection, id: id, modifier(command), drawing: &source, now: now)
                default: try session.remove(collection, id: id, drawing: &source, now: now)
                }
            callTags[call.id] = (tag, true)
            takeEvents()
            emit("returned", ["tag": .string(tag), "value": call.value])
        } catch {
            emit("threw", ["tag": .string(tag), "error": error.event])
        }
    }

    private func document(_ command: JSONNode) -> EJSON { (try? command.value("doc")) ?? .null }
    private func modifier(_ command: JSONNode) -> EJSON {
        (try? command.value("modifier")) ?? .null
    }

    mutating func make(_ call: DDPReplayCall) throws(RealtimeError) {
        do throws(DDPError) {
            let made: DDPCall
            if let stub = stubs[call.request.name] {
                session.beginStub(now: now)
                let outcome = run(stub, call.request.params)
                made = try session.call(call.request, outcome, now: now)
            } else {
                made = try session.call(call.request, drawing: &source, now: now)
            }
            callTags[made.id] = (call.tag, false)
            takeEvents()
            let value = call.returnsStubValue ? made.value : .null
            emit("returned", ["tag": .string(call.tag), "value": value])
        } catch {
            takeEvents()
            emit("threw", ["tag": .string(call.tag), "error": error.event])
        }
    }
}
