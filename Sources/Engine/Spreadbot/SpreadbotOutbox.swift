import Session
import Wire

// Converts sends to and from messages of an outbox.
extension OutboxMessage {
    init(_ kind: SpreadbotSend.Kind, _ payload: [UInt8], _ path: String?, _ key: String) {
        switch kind {
        case .text:
            self.init(.text, key: key, path: path ?? "", payload: payload)
        case .binary:
            self.init(.binary, key: key, path: path ?? "", payload: payload)
        case .request(let path, let contentType):
            self.init(
                .request, key: key, path: path, contentType: contentType, payload: payload)
        }
    }
}

extension SpreadbotSend {
    /// Makes a send from a message that an earlier run left in the outbox.
    init(_ entry: OutboxEntry, number: UInt64) {
        let message = entry.message
        let kind: Kind =
            switch message.kind {
            case .text: .text
            case .binary: .binary
            case .request: .request(path: message.path, contentType: message.contentType)
            }
        self.init(
            number: number, kind: kind, payload: message.payload,
            path: message.kind == .request ? nil : message.path, key: message.key, entry: entry.id)
    }
}
