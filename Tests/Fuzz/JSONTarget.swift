/// JSON survives writing and parsing, from a tree and without its blanks; reading it in place gives
/// the same values; and a truncated text is refused.
func fuzzJSON(_ input: consuming Input) {
    var input = input
    let depth = Int(input.byte())
    let text = Array(input.rest)
    guard let compact = read(text, depth) else {
        require(
            (try? JSONValue(parsing: text, maximumDepth: depth)) == nil, "a tree of an invalid text"
        )
        return
    }
    let value = try? JSONValue(parsing: text, maximumDepth: depth)
    let same = try? JSONValue(parsing: compact, maximumDepth: depth)
    require(same == value, "without blanks it has another value")
    if let last = compact.last, [0x22, 0x5D, 0x7D].contains(last) {
        let part = Array(compact.dropLast())
        require(read(part, depth) == nil, "a truncated text was accepted")
    }
    guard let value else { return }
    guard let written = try? value.text else { fatalError("a value that cannot be written") }
    guard let again = try? JSONValue(parsing: written, maximumDepth: depth) else {
        fatalError("the written text cannot be read: \(written)")
    }
    require((try? again.text) == written, "another text is written")
}

/// The text without its blanks; nil if it is invalid.
private func read(_ text: [UInt8], _ depth: Int) -> [UInt8]? {
    var document = JSONDocument()
    return text.withUnsafeBytes { text in
        try? document.read(text, maximumDepth: depth) { root in
            check(root)
            return withoutBlanks(root.source)
        }
    }
}

/// A JSON text without the blanks outside its strings.
func withoutBlanks(_ text: UnsafeRawBufferPointer) -> [UInt8] {
    var (isInString, isEscaped) = (false, false)
    return text.filter { byte in
        let isBlank = !isInString && [0x20, 0x09, 0x0A, 0x0D].contains(byte)
        if byte == UInt8(ascii: "\""), !isEscaped { isInString.toggle() }
        isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
        return !isBlank
    }
}

/// Checks that the views of a node agree.
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
        require(inside <= text.utf8.count, "more values inside than bytes")
    case .object:
        for member in node.members {
            check(member.name)
            check(member.value)
        }
    }
}
