/// A frame of Nchan's subprotocol: its parts lie inside it, in order; an id is a cursor; and a
/// frame written from the parts is parsed to the same.
func fuzzSpreadbotFrame(_ input: consuming Input) {
    let bytes = input.rest
    guard let frame = SpreadbotFrame(parsing: bytes) else {
        let text = Array(bytes)
        require(text.first != 0x0A, "a frame without headers is refused")
        return
    }
    let head = bytes.count - frame.data.count
    require(head > 0 && bytes[head - 1] == 0x0A, "no line end before the message")
    require(frame.data.elementsEqual(bytes[head...]), "the message is not the end of the frame")
    if head > 1 { require(bytes[head - 2] == 0x0A, "no blank line before the message") }
    var written: [UInt8] = []
    for (name, value) in [
        ("id", frame.id), ("event", frame.event), ("content-type", frame.contentType),
    ] {
        guard let value else { continue }
        require(value.count < head, "\(name) is longer than the headers")
        require(!value.contains(0x0A), "\(name) has a line end")
        written += Array("\(name): ".utf8) + value + [0x0A]
    }
    if let id = frame.id { require(isCursor(id), "an id that is not a cursor") }
    written += [0x0A] + frame.data
    written.withUnsafeBytes { written in
        guard let again = SpreadbotFrame(parsing: written) else {
            fatalError("what was written cannot be read")
        }
        require(isSame(again.id, frame.id), "another id")
        require(isSame(again.event, frame.event), "another event")
        require(isSame(again.contentType, frame.contentType), "another type")
        require(isSame(again.data, frame.data), "another message")
    }
}

private func isCursor(_ id: UnsafeRawBufferPointer) -> Bool {
    id.count > 0 && id.count <= 4096 && !id.contains { $0 < 32 || $0 == 127 }
        && String(validating: id, as: UTF8.self) != nil
}

private func isSame(_ a: UnsafeRawBufferPointer?, _ b: UnsafeRawBufferPointer?) -> Bool {
    guard let a, let b else { return a == nil && b == nil }
    return a.elementsEqual(b)
}

/// Messages as JSON: an envelope agrees with the parsed tree of the text, and a batch with one or
/// two copies of the text has the same envelopes.
func fuzzSpreadbotEnvelope(_ input: consuming Input) {
    let bytes = input.rest
    for envelope in batch(bytes) ?? [] { check(envelope) }
    let envelope = SpreadbotEnvelope.message(bytes)
    var document = JSONDocument()
    let isMessage = try? document.read(bytes) { root in
        guard let data = member("data", of: root) else { return false }
        require(envelope != nil, "no message")
        let text = data.string.map { Array($0.utf8) } ?? withoutBlanks(data.source)
        require(envelope?.data == text, "another text")
        let event = member("event", of: root)?.string ?? ""
        require(envelope?.event ?? [] == Array(event.utf8), "another event")
        if let text = member("id", of: root)?.string, let id = envelope?.id {
            require(Array(text.utf8) == id, "another id")
        }
        return true
    }
    guard let envelope else { return }
    require(isMessage == true, "a message that is not a JSON object with data")
    check(envelope)
    let twice = Array("{\"messages\":[".utf8) + bytes + [0x2C] + bytes + Array("]}".utf8)
    twice.withUnsafeBytes {
        // One level deeper may be too deep.
        guard let both = batch($0) else { return }
        require(both == [envelope, envelope], "a batch of two copies has other envelopes")
    }
}

/// The last member of this name.
private func member(_ name: String, of node: JSONNode) -> JSONNode? {
    var found: JSONNode?
    for member in node.members {
        if let other = member.name.string, other.utf8.elementsEqual(name.utf8) {
            found = member.value
        }
    }
    return found
}

/// The elements of a batch, which must agree with its check.
private func batch(_ bytes: UnsafeRawBufferPointer) -> [SpreadbotEnvelope]? {
    guard var batch = SpreadbotBatch(parsing: bytes) else { return nil }
    let (hasMessages, lastID) = (batch.hasMessages, batch.lastID)
    var all: [SpreadbotEnvelope] = []
    while let envelope = batch.next() { all.append(envelope) }
    require(batch.isEmpty, "an element that cannot be read")
    require(all.contains { $0.data != nil } == hasMessages, "other messages")
    require(all.last { $0.id != nil }?.id == lastID, "another last id")
    var document = JSONDocument()
    let count = try? document.read(bytes) { root in
        var count = 0
        for _ in member("messages", of: root)?.elements ?? root.elements { count += 1 }
        return count
    }
    require(count == all.count, "another count")
    return all
}

private func check(_ envelope: SpreadbotEnvelope) {
    if let id = envelope.id {
        id.withUnsafeBytes { require(isCursor($0), "an id is not a cursor") }
    }
    if let event = envelope.event { require(!event.isEmpty, "an event without a name") }
}

/// A response with tokens: if it is accepted, the tokens fit into a header, their lifetime fits a
/// clock, and they agree with the parsed tree. Otherwise the error is one short line.
func fuzzTokens(_ input: consuming Input) {
    let body = Array(input.rest)
    if let code = SpreadbotTokenAnswer.errorCode(body) {
        require(code.utf8.count < 2000, "an error code of \(code.utf8.count) bytes")
        require(!code.utf8.contains { $0 < 32 }, "an error code with control characters")
    }
    do throws(RealtimeError) {
        let answer = try SpreadbotTokenAnswer(parsing: body)
        let object = (try? JSONValue(parsing: body))?.objectValue
        require(object?["access_token"]?.stringValue == answer.access, "another token")
        require(!answer.access.isEmpty, "no token")
        let isFit = !answer.access.utf8.contains { $0 < 32 && $0 != 9 || $0 == 127 }
        require(isFit, "a token that fits no header")
        if let refresh = answer.refresh {
            require(object?["refresh_token"]?.stringValue == refresh, "another refresh token")
        }
        if let lifetime = answer.lifetime {
            require(lifetime > .zero && lifetime <= .seconds(10 * 365 * 86_400), "\(lifetime)")
        }
    } catch {
        require(error.code == .auth, error.description)
    }
}
