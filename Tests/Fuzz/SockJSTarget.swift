/// A SockJS frame: it is read as its JSON says, and messages survive being sent back.
func fuzzSockJS(_ input: consuming Input) {
    let bytes = input.rest
    guard let frame = try? SockJSFrame(parsing: bytes) else { return }
    let payload = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
    let tree = try? JSONValue(parsing: payload)
    switch frame {
    case .open, .heartbeat: require(tree == nil, "a payload was ignored")
    case .messages(let messages):
        let texts = tree?.arrayValue?.compactMap { $0.stringValue.map { Array($0.utf8) } }
        require(texts == messages, "other messages")
        let body = [UInt8(ascii: "a")] + SockJSBody.bytes(of: messages)
        let again = body.withUnsafeBytes { try? SockJSFrame(parsing: $0) }
        require(again == frame, "messages change on their way")
    case .close(let code, let reason):
        // -0 is not an integer in a tree.
        require(tree?[0]?.doubleValue == Double(code), "another code")
        require(tree?[1] == .string(reason), "another reason")
    }
}
