/// Completes the interface with what a binding must know of each pointer: whether NULL is allowed,
/// how long it is valid, what frees it, and the encoding of its text.
///
/// The rules are those of the header's first page. Where they leave a choice, the comments decide:
/// what NULL means is said where NULL is allowed, and a text that "need not be UTF-8" says so.
struct PointerReader {
    private(set) var interface: Interface
    private(set) var refusals: [Refusal] = []
    private let places: [String: Place]
    private let functions: [String: Function]

    /// Texts from the library that have no length, because they cannot contain a NUL.
    private static let withoutNUL: Set<String> = [
        // The library's own sentences and lines, in which control characters are escapes.
        "message", "line", "rt_last_error", "rt_rest_response_message",
        // HTTP/1 and HTTP/2 readers refuse a NUL in a header and in a reason phrase.
        "http_reason", "subprotocol", "extensions", "content_type", "rt_rest_response_reason",
        "rt_rest_response_header",
        // Addresses, the names of versions and ciphers, a URL that was parsed, and JSON texts.
        "remote_address", "local_address", "tls_version", "tls_cipher", "rt_rest_response_url",
        "rt_ddp_models_schema", "rt_version", "rt_status_name", "rt_thread_fn.name",
        // The program has passed these as texts that end at a NUL.
        "rt_eventsource_store_fn.key", "rt_pusher_trigger_failure.event", "rt_ddp_load_token_fn",
        // A channel's name and a token consist of few characters.
        "channel", "rt_spreadbot_tokens_fn.access_token", "rt_spreadbot_tokens_fn.refresh_token",
    ]

    /// Words of a comment about the result of a function without a handle.
    private static let lifetimes: [(words: String, lifetime: PointerFacts.Lifetime)] = [
        ("Static;", .library), ("Valid until the next failing call on this thread", .failure),
        ("stay valid until the next call of this function", .next),
    ]

    nonisolated(unsafe) private static let null = /(?:[Nn]ever )?\bNULL\b/
    nonisolated(unsafe) private static let reference = /\bas in `(rt_\w+)`/

    init(_ interface: Interface, _ places: [String: Place]) {
        self.interface = interface
        self.places = places
        functions = Dictionary(uniqueKeysWithValues: interface.functions.map { ($0.name, $0) })
    }

    mutating func read() {
        for index in interface.functions.indices { readFunction(index) }
        for index in interface.callbacks.indices { readCallback(index) }
        for index in interface.structs.indices { readStructure(index) }
    }

    private mutating func refuse(_ name: String, _ message: String) {
        refusals.append(Refusal(places[name] ?? Place(file: name, line: 1), message))
    }

    // MARK: Functions

    private mutating func readFunction(_ index: Int) {
        let function = interface.functions[index]
        let ownsUser = function.parameters.contains { $0.role == .destroy }
        for (number, parameter) in function.parameters.enumerated() where isPointer(parameter) {
            var facts = PointerFacts(lifetime: .call)
            var isNullable = true
            switch parameter.role {
            case .handle:
                // NULL is the library's own loop.
                isNullable =
                    function.frees != nil || commentSaysNull(of: parameter, in: function)
            case .input where function.frees != nil: break
            case .input:
                checkInput(parameter, of: function)
                isNullable = parameter.buffer?.length != nil || mayBeNull(parameter, of: function)
            case .callback:
                facts.lifetime = ownsUser ? .destroy : .call
                isNullable =
                    isSetter(function) || isCompletion(function)
                    || mayBeNull(parameter, of: function)
            case .user, .destroy:
                facts.lifetime = ownsUser ? .destroy : .call
            case .output:
                isNullable = outputMayBeNull(parameter, of: function)
                if parameter.type.pointers == 2 {
                    (facts.lifetime, facts.freedBy) = received(by: parameter, of: function)
                }
            }
            if function.frees != nil { facts.lifetime = .taken }
            facts.encoding = encoding(
                parameter.type, text(of: parameter, in: function.documentation))
            interface.functions[index].parameters[number].type.nullable = isNullable
            interface.functions[index].parameters[number].pointer = facts
        }
        readResult(of: function, index)
    }

    /// Of a pointer that the caller receives: it owns the object, or the comment says how long a
    /// text is valid.
    private mutating func received(
        by parameter: Parameter, of function: Function
    ) -> (PointerFacts.Lifetime, freedBy: String?) {
        if let free = functions["\(parameter.type.base)_free"]?.name { return (.owned, free) }
        let text = self.text(of: parameter, in: function.documentation)
        if !text.contains("valid as long as") {
            refuse(
                function.name,
                "the comment of '\(parameter.name)' must say that it is 'valid as long as' what")
        }
        return (.owner, nil)
    }

    private mutating func checkInput(_ parameter: Parameter, of function: Function) {
        let type = parameter.type
        let isHandle = interface.handles.contains { $0.name == type.base }
        guard type.pointers > 0, !type.constant, !isHandle else { return }
        refuse(
            function.name,
            "'\(parameter.name)' is neither constant nor called 'out': it is read or written")
    }

    private mutating func readResult(of function: Function, _ index: Int) {
        guard function.result.pointers > 0 else { return }
        let comment = function.documentation
        let handle = function.parameters.first { $0.role == .handle }
        var facts = PointerFacts(lifetime: .owner)
        if function.name.hasSuffix("_retain") {
            facts.lifetime = .owned
            facts.freedBy = functions["\(function.result.base)_free"]?.name
        } else if handle == nil {
            facts.lifetime = lifetime(ofResult: function.name, comment)
        }
        facts.encoding = encoding(function.result, comment.text)
        interface.functions[index].resultPointer = facts
        let length = function.parameters.first { $0.name == "out_length" }
        let isText = function.result.base == "char" || function.result.base == "uint8_t"
        if let length, isText {
            interface.functions[index].resultBuffer = BufferFacts(length: length.name)
        } else if isText {
            interface.functions[index].resultBuffer = BufferFacts(isTerminated: true)
            checkTerminated(function.result, "the result", function.name, function.name)
        }
    }

    /// The comment says how long a result is valid that belongs to no handle.
    private mutating func lifetime(
        ofResult name: String, _ comment: Documentation
    ) -> PointerFacts.Lifetime {
        let found = PointerReader.lifetimes.first { comment.text.contains($0.words) }
        if found == nil {
            let words = PointerReader.lifetimes.map { "'\($0.words)'" }.joined(separator: ", ")
            refuse(name, "the comment of '\(name)' must say how long its result is valid: \(words)")
        }
        return found?.lifetime ?? .call
    }

    /// Sets a callback, which NULL removes.
    private func isSetter(_ function: Function) -> Bool {
        function.name.contains(/_on_[a-z_]+$/)
    }

    /// Its result comes later: to the callback, to `out_call`, to both or to neither.
    private func isCompletion(_ function: Function) -> Bool {
        function.parameters.contains { $0.name == "out_call" }
    }

    /// Whether the comment says what NULL means: that of the parameter, or that of the function
    /// about `parameter`, or about its only or last argument.
    private func mayBeNull(_ parameter: Parameter, of function: Function) -> Bool {
        if commentSaysNull(of: parameter, in: function) { return true }
        let inputs = function.parameters.filter {
            isPointer($0) && ($0.role == .input || $0.role == .callback)
        }
        let text = function.documentation.text
        if let match = text.firstMatch(of: /NULL as `(\w+)`/) {
            // The arguments after it belong to it.
            let names = inputs.map(\.name)
            guard let named = names.firstIndex(of: String(match.1)),
                let own = names.firstIndex(of: parameter.name)
            else { return false }
            return own >= named
        }
        return inputs.last?.name == parameter.name
            && text.contains(/(?:Default: NULL|\bNULL (?:removes|turns|for|means))\b/)
    }

    /// The parameter's own comment, or that of another function to which it refers.
    private func commentSaysNull(of parameter: Parameter, in function: Function) -> Bool {
        let comments = function.documentation.parameters
        let names = function.parameters.map(\.name)
        guard let place = names.firstIndex(of: parameter.name) else { return false }
        if let own = comments.first(where: { $0.name == parameter.name })?.text {
            if PointerReader.saysNull(own) { return true }
            return refers(own, names, place, to: place)
        }
        // "and the following" is about those that have no comment.
        return names[..<place].indices.reversed().contains { earlier in
            let text = comments.first { $0.name == names[earlier] }?.text ?? ""
            return text.hasPrefix("and the following") && refers(text, names, earlier, to: place)
        }
    }

    /// Whether NULL is allowed for the corresponding parameter of the function that a comment
    /// names.
    private func refers(_ text: String, _ names: [String], _ from: Int, to place: Int) -> Bool {
        guard let match = text.firstMatch(of: PointerReader.reference),
            let other = functions[String(match.1)],
            let start = other.parameters.firstIndex(where: { $0.name == names[from] }),
            other.parameters.indices.contains(start + place - from)
        else { return false }
        return commentSaysNull(of: other.parameters[start + place - from], in: other)
    }

    private static func saysNull(_ text: String) -> Bool {
        text.matches(of: null).contains { $0.0 == "NULL" }
    }

    /// `out` is what the call is made for; `out_length` and the like come with it.
    private func outputMayBeNull(_ parameter: Parameter, of function: Function) -> Bool {
        if parameter.name == "out" { return commentSaysNull(of: parameter, in: function) }
        let text = self.text(of: parameter, in: function.documentation)
        return !text.contains(/\b[Rr]equired\b/)
    }

    // MARK: Callbacks

    private mutating func readCallback(_ index: Int) {
        let callback = interface.callbacks[index]
        let comment = callback.documentation
        for (number, parameter) in callback.parameters.enumerated() where isPointer(parameter) {
            let text = self.text(of: parameter, in: comment)
            var facts = PointerFacts(lifetime: .call)
            var isNullable = PointerReader.saysNull(text)
            if comment.text.contains("`\(parameter.name)` is NULL") { isNullable = true }
            let free = "\(parameter.type.base)_free"
            if comment.text.contains("`\(free)`") {
                facts.lifetime = .owned
                facts.freedBy = free
            }
            if parameter.role == .user {
                facts.lifetime = .destroy
                isNullable = true
            }
            if parameter.role == .input, parameter.buffer?.isTerminated == true {
                checkTerminated(
                    parameter.type, "'\(parameter.name)'", parameter.name, callback.name)
            }
            facts.encoding = encoding(parameter.type, text)
            interface.callbacks[index].parameters[number].type.nullable = isNullable
            interface.callbacks[index].parameters[number].pointer = facts
        }
        guard callback.result.pointers > 0 else { return }
        let lifetime = lifetime(ofResult: callback.name, comment)
        interface.callbacks[index].resultPointer = PointerFacts(
            lifetime: lifetime, encoding: encoding(callback.result, comment.text))
        interface.callbacks[index].resultBuffer = BufferFacts(isTerminated: true)
        checkTerminated(callback.result, "the result", callback.name, callback.name)
    }

    // MARK: Structs

    private mutating func readStructure(_ index: Int) {
        let structure = interface.structs[index]
        for (number, field) in structure.fields.enumerated() where field.type.pointers > 0 {
            let text = field.documentation.text
            let isList = field.buffer?.length?.hasSuffix("_count") == true
            interface.structs[index].fields[number].type.nullable =
                isList || PointerReader.saysNull(text)
            interface.structs[index].fields[number].pointer = PointerFacts(
                lifetime: .owner, encoding: encoding(field.type, text))
            if field.buffer?.isTerminated == true {
                checkTerminated(field.type, "'\(field.name)'", field.name, structure.name)
            }
        }
    }

    // MARK: Text

    private func isPointer(_ parameter: Parameter) -> Bool {
        parameter.type.pointers > 0 || parameter.role == .callback || parameter.role == .destroy
    }

    /// A text that a peer may have sent can contain NULs, so it has a length.
    private mutating func checkTerminated(
        _ type: CType, _ what: String, _ name: String, _ owner: String
    ) {
        let names = [name, "\(owner).\(name)"]
        guard type.base == "char", !names.contains(where: PointerReader.withoutNUL.contains) else {
            return
        }
        refuse(
            owner,
            "\(what) may contain a NUL: write its length beside it, or list it in"
                + " PointerReader.withoutNUL")
    }

    private func encoding(_ type: CType, _ text: String) -> PointerFacts.Encoding? {
        guard type.pointers > 0 else { return nil }
        if type.base == "uint8_t" { return .bytes }
        guard type.base == "char" else { return nil }
        return text.contains(/\b(?:[Nn]eed not be|not necessarily) UTF-8/) ? .bytes : .utf8
    }

    private func text(of parameter: Parameter, in comment: Documentation) -> String {
        comment.parameters.first { $0.name == parameter.name }?.text ?? ""
    }
}
