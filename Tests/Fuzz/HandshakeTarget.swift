/// A server's response to the handshake: read whole and in pieces, which must agree, and verified.
func fuzzHandshake(_ input: consuming Input) {
    let size = Int(input.byte()) + 1
    let bytes = input.rest
    let whole = read(bytes, size: max(bytes.count, 1))
    let split = read(bytes, size: size)
    require(whole == split, "in pieces of \(size): \(split), whole: \(whole)")
    guard case .head(let head, let used) = whole else { return }
    require(used <= min(bytes.count, 8 * limit + limit), "\(used) bytes used")
    do throws(RealtimeError) {
        let handshake = ClientHandshake(
            url: try HTTPURL(parsing: "ws://server.example.com/chat", as: .webSocket),
            nonce: Array("the sample nonce".utf8), subprotocols: ["chat", "superchat"],
            fields: [], deflate: DeflateOffer())
        let outcome = try handshake.verify(head)
        require(head.status == 101, "status \(head.status) was accepted")
        require(["", "chat", "superchat"].contains(outcome.subprotocol), outcome.subprotocol)
    } catch {
        require([.handshake, .httpStatus].contains(error.code), error.description)
        require(!error.message.utf8.contains { $0 < 0x20 }, "control character in a message")
    }
}

private let limit = 1024

private enum Reading: Equatable {
    case needMoreBytes
    case head(ResponseHead, used: Int)
    case failed(RealtimeError)
}

private func read(_ bytes: UnsafeRawBufferPointer, size: Int) -> Reading {
    var reader = ResponseHeadReader(limit: limit)
    var start = 0
    for piece in bytes.pieces(of: size) {
        do throws(RealtimeError) {
            if case .head(let head, let used) = try reader.read(piece) {
                return .head(head, used: start + used)
            }
        } catch {
            return .failed(error)
        }
        start += piece.count
    }
    return .needMoreBytes
}
