import Documents
import Session
import Wire

/// A stub as a scenario describes it.
struct DDPReplayStub {
    let operations: JSONNode
}

extension DDPReplay {
    mutating func run(_ stub: DDPReplayStub, _ params: [EJSON]) -> DDPStubOutcome {
        var variables: [String: EJSON] = [:]
        for operation in stub.operations.elements {
            let arguments: EJSONObject
            do throws(RealtimeError) {
                arguments = try substituted(operation, params, variables)
            } catch {
                return .failure(DDPError(.stub, "bad-scenario", reason: error.message))
            }
            let name = operation.text("op")
            if name == "return" { return .success(arguments["value"] ?? .null) }
            if name == "throw" {
                return .failure(DDPError(operation.member("error") ?? operation, .stub))
            }
            do throws(DDPError) {
                let value = try perform(name, arguments)
                if let variable = operation.member("save")?.string { variables[variable] = value }
            } catch {
                return .failure(error)
            }
        }
        return .success(.null)
    }

    private mutating func perform(
        _ name: String, _ arguments: EJSONObject
    ) throws(DDPError) -> EJSON {
        func text(_ name: String) -> String? {
            if case .string(let text)? = arguments[name] { text } else { nil }
        }
        func value(_ name: String) -> EJSON { arguments[name] ?? .null }
        let collection = text("collection") ?? ""
        switch name {
        case "insert":
            return try session.insertInStub(collection, value("doc"), drawing: &source)
        case "update":
            return .number(
                Double(try session.updateInStub(collection, value("id"), value("modifier"))))
        case "remove":
            return .number(Double(try session.removeInStub(collection, value("id"))))
        case "call":
            var params: [EJSON] = []
            if case .array(let list) = value("params") { params = list }
            return try callInStub(DDPRequest(text("name") ?? "", params)).get()
        case "find":
            let selector = arguments["selector"] ?? .object(EJSONObject())
            guard let query = try? Query(selector: selector, options: value("options")),
                let found = try? session.store.find(query, in: collection)
            else { throw DDPError(.stub, "bad-query") }
            return .array(found.map { $0.document })
        case "random":
            var count = 17
            if case .number(let number) = value("n") { count = Int(number) }
            return session.draw(from: text("stream") ?? "default", drawing: &source) { stream in
                switch text("kind") {
                case "id": .string(stream.id(count))
                case "hex": .string(stream.hexString(count))
                default: .number(stream.fraction())
                }
            } ?? .null
        case "userId": return session.userID.map { .string($0) } ?? .null
        default: throw DDPError(.stub, "unknown-operation", reason: name)
        }
    }

    private mutating func callInStub(_ request: DDPRequest) -> DDPStubOutcome {
        guard let stub = stubs[request.name] else {
            return session.callInStub(request, drawing: &source)
        }
        session.enterStub(request.name)
        defer { session.leaveStub() }
        return run(stub, request.params)
    }

    /// The arguments of an operation. Parameters and variables are put into its JSON form.
    private func substituted(
        _ node: JSONNode, _ params: [EJSON], _ variables: [String: EJSON]
    ) throws(RealtimeError) -> EJSONObject {
        var text: [UInt8] = []
        write(node, params, variables, to: &text)
        guard case .object(let fields) = try EJSON(parsing: String(decoding: text, as: UTF8.self))
        else { throw RealtimeError(.invalidArgument, "an operation is not an object") }
        return fields
    }

    private func write(
        _ node: JSONNode, _ params: [EJSON], _ variables: [String: EJSON], to text: inout [UInt8]
    ) {
        switch node.kind {
        case .array:
            text.append(UInt8(ascii: "["))
            for (index, element) in node.elements.enumerated() {
                if index > 0 { text.append(UInt8(ascii: ",")) }
                write(element, params, variables, to: &text)
            }
            text.append(UInt8(ascii: "]"))
        case .object:
            if let index = node.member("$param")?.integer {
                let isThere = params.indices.contains(Int(index))
                (isThere ? params[Int(index)] : .null).write(to: &text)
            } else if let name = node.member("$var")?.string {
                (variables[name] ?? .null).write(to: &text)
            } else {
                text.append(UInt8(ascii: "{"))
                for (index, member) in node.members.enumerated() {
                    if index > 0 { text.append(UInt8(ascii: ",")) }
                    text.append(contentsOf: member.name.source)
                    text.append(UInt8(ascii: ":"))
                    write(member.value, params, variables, to: &text)
                }
                text.append(UInt8(ascii: "}"))
            }
        case .null, .bool, .number, .string: text.append(contentsOf: node.source)
        }
    }
}
