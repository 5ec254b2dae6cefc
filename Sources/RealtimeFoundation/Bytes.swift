public import Foundation
public import Realtime

extension WebSocket {
    /// Sends bytes as a binary message; see `send(_:compression:)`.
    public func send(_ data: Data, compression: Compression = .automatic) async throws {
        try await send([UInt8](data), compression: compression)
    }

    /// Queues bytes as a binary message without waiting; see `enqueue(_:compression:)`.
    public func enqueue(
        _ data: Data, compression: Compression = .automatic
    ) throws(RealtimeError) {
        try enqueue(data.bytes, compression: compression)
    }
}

extension WebSocket.Message {
    /// The bytes of the message; those of a text are UTF-8.
    public var contents: Data {
        switch self {
        case .text(let text): Data(text.utf8)
        case .binary(let bytes): Data(bytes)
        }
    }
}

extension EventSource.Event {
    /// The data as UTF-8.
    public var contents: Data { Data(data.utf8) }
}

extension LongPoll.Message {
    /// The data as `Data`.
    public var contents: Data { Data(data) }
}

extension Spreadbot.Message {
    /// The data as `Data`.
    public var contents: Data { Data(data) }
}

extension REST.Response {
    /// The body as `Data`.
    public var contents: Data { Data(body) }
}

extension REST.Request.Body {
    /// - Parameter type: the Content-Type; nil sends none.
    public static func data(_ data: Data, type: String? = nil) -> Self {
        .bytes([UInt8](data), type: type)
    }
}
