/// A message that outlives its read: one of the library's own, or one that had to wait.
package struct PusherEvent: Sendable {
    package var event: [UInt8]
    package var channel: [UInt8]?
    package var dataKind: PusherData.Kind
    package var dataBytes: [UInt8]
    package var userID: [UInt8]?
    /// The whole message; empty if the library made the event.
    package var source: [UInt8]

    package init(
        _ event: String, channel: String?, _ dataKind: PusherData.Kind, _ dataBytes: [UInt8] = [],
        userID: [UInt8]? = nil, source: [UInt8] = []
    ) {
        self.event = Array(event.utf8)
        self.channel = channel.map { Array($0.utf8) }
        self.dataKind = dataKind
        self.dataBytes = dataBytes
        self.userID = userID
        self.source = source
    }

    package init(_ envelope: PusherEnvelope) {
        event = Array(envelope.event)
        channel = envelope.channel.map { Array($0) }
        dataKind = envelope.data.kind
        dataBytes = Array(envelope.data.bytes)
        userID = envelope.userID.map { Array($0) }
        source = Array(envelope.source)
    }

    /// The same for a failure that servers explain: some quote the signature that they expected.
    package var withoutSignatures: PusherEvent {
        var event = self
        event.dataBytes = PusherRedaction.bytes(of: dataBytes)
        event.source = PusherRedaction.bytes(of: source)
        return event
    }

    /// The same without the credentials that the server quotes.
    package func redacted(by secrets: SentSecrets) -> PusherEvent {
        var event = self
        event.dataBytes = secrets.redacted(dataBytes)
        event.source = secrets.redacted(source)
        return event
    }

    /// Calls `body` with the borrowed data.
    package func withData<Result>(
        _ body: (PusherData) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        let kind = dataKind
        return try dataBytes.withUnsafeBufferPointer { bytes throws(RealtimeError) in
            try body(PusherData(kind, UnsafeRawBufferPointer(bytes)))
        }
    }

    /// The whole message; for an event that the library made, as a server would send it.
    package var message: [UInt8] {
        guard source.isEmpty else { return source }
        var bytes: [UInt8] = []
        func add(_ name: String, _ text: [UInt8]) {
            bytes.append(contentsOf: name.utf8)
            JSONString.write(String(decoding: text, as: UTF8.self), to: &bytes)
        }
        add(#"{"event":"#, event)
        if let channel { add(#","channel":"#, channel) }
        switch dataKind {
        case .none: break
        case .text: add(#","data":"#, dataBytes)
        case .json:
            bytes.append(contentsOf: #","data":"#.utf8)
            bytes.append(contentsOf: dataBytes)
        }
        if let userID { add(#","user_id":"#, userID) }
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    /// Any member of the message as JSON text; nil if there is none.
    package func property(_ name: String) -> [UInt8]? {
        var reader = PusherEnvelopeReader()
        return message.withUnsafeBytes { source in
            try? reader.read(source) { envelope in envelope.property(name).map { Array($0) } }
        }
    }
}
