/// JSON: what is read is the same when it is written and read again, from a tree and without its
/// blanks; looked at without a tree it says the same; and a text without its end is none.
func fuzzJSON(_ input: consuming Input) {
    var input = input
    let depth = Int(input.byte())
    let text = Array(input.rest)
    guard let compact = read(text, depth) else {
        require((try? JSONValue(parsing: text, maximumDepth: depth)) == nil, "a tree of nothing")
        return
    }
    let value = try? JSONValue(parsing: text, maximumDepth: depth)
    let same = try? JSONValue(parsing: compact, maximumDepth: depth)
    require(same == value, "without blanks it is something else")
    if let last = compact.last, [0x22, 0x5D, 0x7D].contains(last) {
        let part = Array(compact.dropLast())
        require(read(part, depth) == nil, "a text without its end")
    }
    guard let value else { return }
    guard let written = try? value.text else { fatalError("a value that cannot be written") }
    guard let again = try? JSONValue(parsing: written, maximumDepth: depth) else {
        fatalError("what was written cannot be read: \(written)")
    }
    require((try? again.text) == written, "another text is written")
}

/// The text without its blanks; nil for none.
private func read(_ text: [UInt8], _ depth: Int) -> [UInt8]? {
    var document = JSONDocument()
    return text.withUnsafeBytes { text in
        try? document.read(text, maximumDepth: depth) { root in
            check(root)
            return withoutBlanks(root.source)
        }
    }
}

/// A text of JSON without the blanks outside its strings.
func withoutBlanks(_ text: UnsafeRawBufferPointer) -> [UInt8] {
    var (isInString, isEscaped) = (false, false)
    return text.filter { byte in
        let isBlank = !isInString && [0x20, 0x09, 0x0A, 0x0D].contains(byte)
        if byte == UInt8(ascii: "\""), !isEscaped { isInString.toggle() }
        isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
        return !isBlank
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
        require(node.string != nil, "a string")
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
        }
    }
}
