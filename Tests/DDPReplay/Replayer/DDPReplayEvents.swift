import Documents
import Session
import Wire

// What the client does, in the words of the recorded scenarios.
extension DDPReplay {
    mutating func takeEvents() {
        while let action = session.nextAction() { take(action) }
    }

    private mutating func take(_ action: DDPSession.Action) {
        switch action {
        case .command(let command): take(command)
        case .report(let report): take(report)
        }
    }

    private mutating func take(_ command: DDPSession.Command) {
        switch command {
        case .connect(let number):
            if hasDropped { emit("redial", [:]) }
            hasDropped = false
            dialed = number
        case .send(_, let message):
            let text = String(decoding: message, as: UTF8.self)
            emit("send", ["msg": (try? EJSON(parsing: text)) ?? .string(text)])
        case .close, .drop:
            if socket != nil { hasDropped = true }
            (socket, dialed) = (nil, nil)
        case .keep: break
        }
    }

    private mutating func take(_ report: DDPSession.Report) {
        switch report {
        case .status(let change):
            switch change.status {
            case .failed: emit("failed", [:])
            case .waiting: if hasDropped { emit("drop", [:]) }
            case .offline, .connecting, .connected: return
            }
            hasDropped = false
        case .changed(let notification): take(notification)
        case .result(let id, let result):
            guard let call = callTags[id], !call.isWrite else { return }
            emit("result", result.event(call.tag))
        case .completed(let id, let result):
            if let call = callTags[id] { emit("done", result.event(call.tag)) }
        case .ready(let handle): emit("ready", ["tag": .string(subscriptionTags[handle] ?? "")])
        case .stopped(let handle, let error):
            var event = EJSONObject()
            event["tag"] = .string(subscriptionTags[handle] ?? "")
            if let error { event["error"] = error.event }
            emit("stopped", event)
        case .streamed, .loaded, .account, .current, .refused, .log: break
        }
    }

    private mutating func take(_ notification: Notification) {
        for live in notification.live {
            guard let tag = queryTags[live.query] else { continue }
            for change in live.changes { emit(change, tag) }
        }
    }

    mutating func emit(_ name: String, _ event: EJSONObject) {
        var event = event
        event["ev"] = .string(name)
        events.append(.object(event))
    }

    mutating func emit(_ change: ListChange, _ tag: String) {
        func place(_ id: DocumentID?) -> EJSON { id.map { .string($0.wire) } ?? .null }
        var event: EJSONObject = ["query": .string(tag)]
        switch change {
        case .added(let id, let fields, let before):
            event["id"] = .string(id.wire)
            event["fields"] = .object(fields)
            event["before"] = place(before)
            emit("added", event)
        case .changed(let id, let fields, let cleared):
            event["id"] = .string(id.wire)
            event["fields"] = .object(fields)
            if !cleared.isEmpty { event["cleared"] = .array(cleared.map { .string($0) }) }
            emit("changed", event)
        case .moved(let id, let before):
            event["id"] = .string(id.wire)
            event["before"] = place(before)
            emit("moved", event)
        case .removed(let id):
            event["id"] = .string(id.wire)
            emit("removed", event)
        }
    }
}

extension Found {
    var document: EJSON {
        var document: EJSONObject = ["_id": id.value ?? .null]
        for field in fields.fields { document[field.name] = field.value }
        return .object(document)
    }
}

extension DDPError {
    /// The members that the scenarios compare. Our own errors have no text there.
    var event: EJSON {
        var event = EJSONObject()
        event["error"] =
            codeIsNumber ? Double(code).map { .number($0) } : .string(code)
        switch kind {
        case .server, .stub:
            if let reason { event["reason"] = .string(reason) }
            if let details { event["details"] = details }
        case .invocationFailed, .disconnected, .timeout, .closed: break
        }
        return .object(event)
    }
}

extension Result where Success == EJSON, Failure == DDPError {
    fileprivate func event(_ tag: String) -> EJSONObject {
        switch self {
        case .success(let value): ["tag": .string(tag), "result": value]
        case .failure(let error): ["tag": .string(tag), "error": error.event]
        }
    }
}
