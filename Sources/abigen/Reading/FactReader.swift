/// Completes the interface with facts that follow from its names and comments, and refuses what
/// lacks them: bindings are printed from them.
struct FactReader {
    private(set) var interface: Interface
    private(set) var refusals: [Refusal] = []
    private let places: [String: Place]
    private let callbacks: Set<String>
    private let functions: [String: Function]
    /// The names of the statuses.
    private let statuses: Set<String>

    nonisolated(unsafe) private static let status = /\bRT_(?:OK|ERROR_\w+)\b/
    nonisolated(unsafe) private static let reference = /\b[Aa]s (?:in )?`(rt_\w+)`/
    nonisolated(unsafe) private static let before =
        /\bBefore (start|the client is used|the first request|the first bytes)\b/
    nonisolated(unsafe) private static let alias = /`(rt_\w+)`/
    private static let statusType = "rt_status"
    private static let destroyType = "rt_destroy_fn"

    init(_ interface: Interface, _ places: [String: Place]) {
        self.interface = interface
        self.places = places
        callbacks = Set(interface.callbacks.map(\.name))
        functions = Dictionary(uniqueKeysWithValues: interface.functions.map { ($0.name, $0) })
        statuses = Set(
            interface.enums.filter { $0.alias == FactReader.statusType }
                .flatMap(\.constants).map(\.name))
    }

    mutating func read() {
        for index in interface.functions.indices { readFunction(index) }
        for index in interface.callbacks.indices {
            let callback = interface.callbacks[index]
            interface.callbacks[index].parameters = described(callback.parameters, callback.name)
            interface.callbacks[index].mayCall = !callback.documentation.text.contains(
                "must not call functions of this library")
        }
        for index in interface.structs.indices { readStructure(index) }
        for index in interface.handles.indices {
            let name = interface.handles[index].name
            interface.handles[index].creators = creators(of: name)
            interface.handles[index].destructor = destructor(of: name)
        }
    }

    private mutating func refuse(_ name: String, _ message: String) {
        refusals.append(Refusal(places[name] ?? Place(file: name, line: 1), message))
    }

    // MARK: Functions

    private mutating func readFunction(_ index: Int) {
        let function = interface.functions[index]
        let name = function.name
        let parameters = described(function.parameters, name)
        checkCallbacks(parameters, of: name)
        for parameter in parameters where creates(parameter) {
            let type = parameter.type.base
            if destructor(of: type) == nil {
                refuse(name, "'\(parameter.name)' receives an '\(type)', which nothing frees")
            }
        }
        interface.functions[index].parameters = parameters
        if name.hasSuffix("_free"), let type = parameters.first?.type, type.pointers == 1 {
            interface.functions[index].frees = type.base
        }
        interface.functions[index].blocks =
            parameters.contains { $0.name == "timeout_ms" }
            || Vocabulary.waitingWithoutLimit.contains(name)
        if let first = parameters.first, first.role == .handle,
            let handle = interface.handles.first(where: { $0.name == first.type.base }),
            handle.documentation.text.contains("one thread at a time")
        {
            interface.functions[index].thread = .one
        }
        var seen: Set<String> = []
        let found = listed(in: function, &seen)
        interface.functions[index].statuses = found
        interface.functions[index].isRefusedInCallbacks = found.contains("RT_ERROR_REENTRANT")
        interface.functions[index].before = phase(of: function)
        // A function may also return a status that it was given.
        let returnsArgument = parameters.contains { $0.type.base == FactReader.statusType }
        if function.result.base == FactReader.statusType, found.isEmpty, !returnsArgument {
            refuse(name, "'- Returns:' of '\(name)' must list its statuses")
        }
    }

    /// An option is set before something: its own comment says so, or its chapter about all.
    private func phase(of function: Function) -> String? {
        let text = function.documentation.text
        if let match = text.firstMatch(of: FactReader.before) { return String(match.1) }
        let chapter = interface.chapters.first { $0.name == function.chapter }
        let isOption = chapter?.summary.contains("All are set before") == true
        return isOption && !text.contains("at any time") ? "start" : nil
    }

    /// A function is passed as (fn, user, destroy): user data belongs to a callback before it.
    private mutating func checkCallbacks(_ parameters: [Parameter], of name: String) {
        let user = parameters.firstIndex { $0.role == .user }
        let callback = parameters.firstIndex { $0.role == .callback }
        let destroy = parameters.firstIndex { $0.role == .destroy }
        if let callback, user.map({ $0 < callback }) ?? true {
            refuse(name, "'\(parameters[callback].name)' must be followed by 'user'")
        }
        if let user, callback == nil {
            refuse(name, "'\(parameters[user].name)' belongs to no callback")
        }
        if let destroy, destroy - 1 != user {
            refuse(name, "'\(parameters[destroy].name)' must follow 'user'")
        }
    }

    /// The statuses that a function's comment lists, in its order.
    private mutating func listed(in function: Function, _ seen: inout Set<String>) -> [String] {
        guard seen.insert(function.name).inserted else { return [] }
        let text = function.documentation.returns ?? ""
        var found: [String] = []
        for match in text.matches(of: FactReader.status) {
            let status = String(match.0)
            if !statuses.contains(status) {
                refuse(function.name, "'- Returns:' names '\(status)', which does not exist")
            } else if !found.contains(status) {
                found.append(status)
            }
        }
        for match in text.matches(of: FactReader.reference) {
            guard let other = functions[String(match.1)] else {
                refuse(function.name, "'- Returns:' names '\(match.1)', which does not exist")
                continue
            }
            for status in listed(in: other, &seen) where !found.contains(status) {
                found.append(status)
            }
        }
        return found
    }

    // MARK: Parameters

    private mutating func described(_ parameters: [Parameter], _ owner: String) -> [Parameter] {
        var described = parameters
        for (index, parameter) in parameters.enumerated() {
            described[index].role = role(of: parameter, isFirst: index == 0)
            let next = index + 1 < parameters.count ? parameters[index + 1] : nil
            let buffer = buffer(parameter.name, parameter.type, next?.name, next?.type)
            described[index].buffer = buffer
            let isBytes = parameter.type.base == "uint8_t" && parameter.type.pointers == 1
            // The first bytes of a batch; its elements have the lengths.
            if isBytes, buffer?.length == nil, parameter.name != "base" {
                refuse(owner, "'\(parameter.name)' has no length beside it")
            }
        }
        return described
    }

    private func role(of parameter: Parameter, isFirst: Bool) -> Parameter.Role {
        let type = parameter.type
        if type.base == FactReader.destroyType { return .destroy }
        if callbacks.contains(type.base) { return .callback }
        if parameter.name == "user" { return .user }
        if isFirst, type.pointers == 1, interface.handles.contains(where: { $0.name == type.base })
        {
            return .handle
        }
        let isFilled = parameter.name.hasPrefix("out") || parameter.name == "buffer"
        let isWritable = type.pointers == 2 || type.pointers == 1 && !type.constant
        return isWritable && isFilled ? .output : .input
    }

    private func creates(_ parameter: Parameter) -> Bool {
        parameter.role == .output && parameter.type.pointers == 2
            && (parameter.type.base != "char" && parameter.type.base != "void")
    }

    /// `data` and `length`, `text` and `text_length`, `changes` and `change_count`, `buffer` and
    /// `size`.
    private func buffer(
        _ name: String, _ type: CType, _ next: String?, _ nextType: CType?
    ) -> BufferFacts? {
        if type.pointers == 2, type.base == "char", next == "out_length" {
            return BufferFacts(length: next)
        }
        guard type.pointers == 1, type.base != "void" else { return nil }
        let singular = name.hasSuffix("s") ? String(name.dropLast()) : name
        let names = [
            "length", "count", "capacity", "size", "\(name)_length", "\(singular)_count",
        ]
        if let next, names.contains(next), nextType?.base == "size_t", nextType?.pointers == 0 {
            return BufferFacts(length: next)
        }
        return type.base == "char" && type.constant ? BufferFacts(isTerminated: true) : nil
    }

    // MARK: Types

    private mutating func readStructure(_ index: Int) {
        let structure = interface.structs[index]
        for (number, field) in structure.fields.enumerated() {
            let next = number + 1 < structure.fields.count ? structure.fields[number + 1] : nil
            interface.structs[index].fields[number].buffer = buffer(
                field.name, field.type, next?.name, next?.type)
            guard field.type == CType(base: "int32_t") else { continue }
            let text = field.documentation.text
            let aliases = text.matches(of: FactReader.alias).map { String($0.1) }
            let enumeration = aliases.first { name in
                interface.enums.contains { $0.alias == name }
            }
            interface.structs[index].fields[number].enumeration = enumeration
            if enumeration == nil, text.contains(/\bRT_[A-Z]/) {
                let words = "'\(field.name)' has constants: its comment must name their type"
                refuse(structure.name, words)
            }
        }
        interface.structs[index].creators = creators(of: structure.name)
        interface.structs[index].destructor = destructor(of: structure.name)
    }

    private func creators(of type: String) -> [String] {
        interface.functions.filter { function in
            function.parameters.contains { creates($0) && $0.type.base == type }
        }.map(\.name)
    }

    private func destructor(of type: String) -> String? { functions["\(type)_free"]?.name }
}

extension Documentation {
    /// All of its paragraphs.
    var text: String { paragraphs.joined(separator: " ") }
}
