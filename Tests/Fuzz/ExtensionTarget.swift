/// A Sec-WebSocket-Extensions header: the parsed header survives printing and parsing, and the
/// agreement respects the offer, which the first byte chooses.
func fuzzExtension(_ input: consuming Input) {
    let choice = input.byte()
    let text = String(decoding: input.rest, as: UTF8.self)
    if let extensions = try? ExtensionHeader.parse(text) {
        let printed = extensions.map(print).joined(separator: ", ")
        let again = try? ExtensionHeader.parse(printed)
        require(again == extensions, "\(extensions), read again: \(String(describing: again))")
    }
    var offer = DeflateOffer()
    offer.clientMaxWindowBits = 9 + Int(choice & 7) % 7
    offer.serverMaxWindowBits = 8 + Int(choice >> 3 & 7)
    offer.clientNoContextTakeover = choice & 64 != 0
    offer.serverNoContextTakeover = choice & 128 != 0
    do throws(RealtimeError) {
        let agreed = try DeflateParameters.agreed(answer: [text], offer: offer)
        guard let agreed else { return }
        require(
            (8...offer.clientMaxWindowBits).contains(agreed.clientMaxWindowBits)
                && (8...offer.serverMaxWindowBits).contains(agreed.serverMaxWindowBits)
                && (agreed.clientNoContextTakeover || !offer.clientNoContextTakeover)
                && (agreed.serverNoContextTakeover || !offer.serverNoContextTakeover),
            "\(offer.headerValue) became \(agreed)")
    } catch {
        require(error.code == .handshake, error.description)
    }
}

private func print(_ header: ExtensionHeader) -> String {
    header.parameters.reduce(into: header.name) { text, parameter in
        text += ";" + parameter.name + (parameter.value.map { "=\"\($0)\"" } ?? "")
    }
}
