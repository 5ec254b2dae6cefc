import Glibc

/// A message of Pusher Channels: its parts agree with the parsed tree, a message written from them
/// is read to the same, and no payload reader traps.
func fuzzPusherEnvelope(_ input: consuming Input) {
    let bytes = input.rest
    let tree = (try? JSONValue(parsing: bytes))?.objectValue
    var reader = PusherEnvelopeReader()
    let event = try? reader.read(bytes) { envelope in
        readPayloads(envelope)
        return PusherEvent(envelope)
    }
    guard let event else {
        require(tree?["event"]?.stringValue == nil, "a message was refused")
        return
    }
    // A number such as 1e400 has no tree.
    if let tree {
        require(Array((tree["event"]?.stringValue ?? "?").utf8) == event.event, "another event")
        require(tree["channel"]?.stringValue.map { Array($0.utf8) } == event.channel, "a channel")
        if let text = tree["data"]?.stringValue {
            require(event.dataKind == .text && event.dataBytes == Array(text.utf8), "another text")
        } else if let value = tree["data"], value != .null {
            require(event.dataKind == .json, "data was lost")
            require((try? JSONValue(parsing: event.dataBytes)) == value, "other data")
        } else {
            require(event.dataKind == .none && event.dataBytes.isEmpty, "data without a member")
        }
    }
    if let channel = event.channel, let again = rewritten(event, channel) {
        require(again.event == event.event && again.channel == channel, "another channel")
        require(again.dataKind == event.dataKind, "another kind")
        require(again.dataBytes == event.dataBytes, "other data")
    }
}

/// The event of a message with the same event, channel and data.
private func rewritten(_ event: PusherEvent, _ channel: [UInt8]) -> PusherEvent? {
    let text = String(decoding: event.dataBytes, as: UTF8.self)
    let data: JSONText?
    switch event.dataKind {
    case .none: data = nil
    case .text: data = try? JSONText(.string(text))
    case .json: data = try? JSONText(checking: text)
    }
    let message = PusherMessage.clientEvent(
        String(decoding: event.event, as: UTF8.self),
        channel: String(decoding: channel, as: UTF8.self), data: data)
    var reader = PusherEnvelopeReader()
    return message.withUnsafeBytes { message in
        guard let again = try? reader.read(message, { PusherEvent($0) }) else {
            fatalError("what was written cannot be read")
        }
        return again
    }
}

private func readPayloads(_ envelope: PusherEnvelope) {
    let data = envelope.data
    _ = data.value
    _ = PusherEventName(envelope.event)
    _ = envelope.property("event")
    let error = PusherErrorMessage(envelope)
    require(error.message.utf8.count <= envelope.source.count, "a message that was not received")
    _ = PusherSubscriptionError(data)
    if let count = PusherSubscriptionCount.read(data) { require(count >= 0, "a count of \(count)") }
    if let handshake = try? PusherHandshake(data) {
        require(!handshake.socketID.isEmpty && handshake.socketID.utf8.count <= 256, "a socket id")
        if let timeout = handshake.activityTimeout {
            require(timeout > .zero && timeout <= .seconds(86_400), "a timeout of \(timeout)")
        }
    }
    if let user = try? PusherSignedInUser(data) { require(!user.id.isEmpty, "a user without id") }
    for event in (try? PusherWatchlistEvent.all(data)) ?? [] {
        require(event.userIDs.allSatisfy { !$0.isEmpty }, "an empty id")
    }
    _ = PusherWatchlistEvent(bare: envelope)
}

/// Presence data: one member for each id, those of `hash` first; and they agree with the tree.
func fuzzPusherPresence(_ input: consuming Input) {
    let data = PusherData(.text, input.rest)
    if let member = try? PusherMember(data) { check(member) }
    let tree = try? JSONValue(parsing: input.rest)
    guard var table = try? PusherPresenceTable(data) else {
        require(tree == nil, "presence data was refused")
        return
    }
    let members = table.members
    require(members.count == table.count, "another count")
    require(members.count <= input.rest.count, "more members than bytes")
    let hash = tree?["presence"]?["hash"]?.objectValue?.members.filter { !$0.name.isEmpty }
    for (member, named) in zip(members, hash ?? []) {
        require(member.id.utf8.elementsEqual(named.name.utf8), "another member")
        require(member.info == nil ? named.value == .null : named.value != .null, "another info")
    }
    for member in members {
        check(member)
        require(table[member.id] == member, "an unknown member")
        require(table.insert(member) && table.count == members.count, "a member twice")
    }
    for member in members.reversed() {
        require(table.remove(member.id) == member, "another member was removed")
        require(table[member.id] == nil, "a removed member")
    }
    require(table.count == 0 && table.members.isEmpty, "members that stay")
}

private func check(_ member: PusherMember) {
    require(!member.id.isEmpty, "a member without id")
    if let info = member.info {
        let text = String(decoding: info, as: UTF8.self)
        require((try? JSONText(checking: text)) != nil, "an info that is not JSON")
    }
}

/// The answer to an authorization request: an error does not show the body, and a batch that
/// contains an answer gives the same.
func fuzzPusherAnswer(_ input: consuming Input) {
    let body = input.rest
    guard let channel = try? PusherChannelName("private-encrypted-x") else { return }
    _ = try? PusherAuthorizationAnswer.batch(json: body, for: [channel])
    if let user = try? PusherUserAnswer(json: body) { require(!user.auth.isEmpty, "no auth") }
    let answer = try? PusherAuthorizationAnswer(json: body, for: .encrypted)
    if let answer {
        require(!answer.auth.isEmpty && answer.sharedSecret != nil, "an answer without its parts")
        let plain = try? PusherAuthorizationAnswer(json: body, for: .presence)
        require(plain?.channelData == answer.channelData, "other channel data")
    }
    let batch = Array("{\"private-encrypted-x\":".utf8) + body + [UInt8(ascii: "}")]
    batch.withUnsafeBytes { batch in
        // One level deeper may be too deep.
        let results = try? PusherAuthorizationAnswer.batch(json: batch, for: [channel])
        guard let result = results?.first, let answer else { return }
        require((try? result.get().auth) == answer.auth, "another answer in a batch")
    }
}

/// An encrypted event: what libsodium seals is opened, and nothing else is.
func fuzzPusherEncrypted(_ input: consuming Input) {
    var input = input
    let isSealed = input.byte() & 1 == 0
    let key = (0..<32).map { UInt8($0) }
    guard let secret = SharedSecret(key.withUnsafeBytes { SecretBytes($0) }) else { return }
    let text = Array(input.rest)
    let data = isSealed ? sealed(text, key) : text
    guard let data else { return }
    var box = PusherSecretBox()
    data.withUnsafeBytes { data in
        guard let opened = try? box.open(PusherData(.text, data), with: secret) else {
            fatalError("libsodium cannot be loaded")
        }
        let isUTF8 = text.withUnsafeBytes { UTF8Validator.isValid($0) }
        switch opened {
        case .text(let opened): require(isSealed && opened.elementsEqual(text), "another text")
        case .wrongKey: require(!isSealed, "the key is right")
        case .malformed: require(!isSealed || !isUTF8, "the data is right")
        }
    }
}

private typealias Seal =
    @convention(c) (
        UnsafeMutablePointer<UInt8>, UnsafePointer<UInt8>, UInt64, UnsafePointer<UInt8>,
        UnsafePointer<UInt8>
    ) -> CInt

private let seal: Seal? = {
    let library = dlopen("libsodium.so.26", RTLD_NOW) ?? dlopen("libsodium.so.23", RTLD_NOW)
    return dlsym(library, "crypto_secretbox_easy").map { unsafeBitCast($0, to: Seal.self) }
}()

/// An event's data with this text; nil if libsodium is not installed.
private func sealed(_ text: [UInt8], _ key: [UInt8]) -> [UInt8]? {
    let nonce = (0..<24).map { UInt8($0 * 7) }
    var box = [UInt8](repeating: 0, count: text.count + 16)
    guard let seal, seal(&box, text, UInt64(text.count), nonce, key) == 0 else { return nil }
    return Array("{\"nonce\":\"\(base64(nonce))\",\"ciphertext\":\"\(base64(box))\"}".utf8)
}
