/// JSON: what is read is the same when it is written and read again, from a tree and as it came;
/// looked at without a tree it says the same; and a text without its end is none.
func fuzzJSON(_ input: consuming Input) {
    var input = input
    let depth = Int(input.byte())
    let text = Array(input.rest)
    guard let source = sourceText(text, depth) else {
        require((try? JSONValue(parsing: text, maximumDepth: depth)) == nil, "a tree of nothing")
        return
    }
    let compact = Array(source.utf8)
    require(sourceText(compact, depth) == source, "what is compact becomes something else")
    if let last = compact.last, [0x22, 0x5D, 0x7D].contains(last) {
        require(sourceText(compact.dropLast(), depth) == nil, "a text without its end")
    }
    guard let value = try? JSONValue(parsing: text, maximumDepth: depth) else { return }
    guard let written = try? value.text else { fatalError("a value that cannot be written") }
    guard let again = try? JSONValue(parsing: written, maximumDepth: depth) else {
        fatalError("what was written cannot be read: \(written)")
    }
    require((try? again.text) == written, "another text is written")
}

private func sourceText(_ text: [UInt8], _ depth: Int) -> String? {
    var document = JSONDocument()
    return text.withUnsafeBytes { text in
        try? document.read(text, maximumDepth: depth) { root in
            check(root)
            return root.sourceText
        }
    }
}

/// What the parts of a node say agrees.
private func check(_ node: JSONNode) {
    let text = String(decoding: node.source, as: UTF8.self)
    switch node.kind {
    case .null: require(text == "null", "null")
    case .bool: require(node.bool == (text == "true"), "a bool")
    case .number:
        let value = Double(text).flatMap { $0.isFinite ? $0 : nil }
        require(node.double?.bitPattern == value?.bitPattern, "\(text) is another double")
        require(node.integer == Int64(text), "\(text) is another integer")
    case .string:
        let string = node.string ?? ""
        require(node.isString(string), "a string is not itself")
        require(!node.isString(string + "x"), "a string is more than itself")
    case .array:
        var inside = 0
        for element in node.elements {
            check(element)
            inside += element.source.count + 1
        }
        require(inside <= text.utf8.count, "more inside than there is")
    case .object:
        for member in node.members {
            check(member.name)
            check(member.value)
            require(member.name.string.flatMap { node[$0] } != nil, "a member that is not found")
        }
    }
}
