/// One event of a stream. Each text is UTF-8 and followed by a NUL, which its length does not
/// include. It is valid until the parser is called again.
package struct StreamEvent {
    /// The last event id. Events without an id repeat the previous one; it may be empty.
    package let id: UnsafeRawBufferPointer
    /// "message" if the stream did not name a type.
    package let type: UnsafeRawBufferPointer
    package let data: UnsafeRawBufferPointer
    /// Whether this event itself had an id.
    package let hadID: Bool

    /// Whether the type is "message".
    package let isMessage: Bool

    static var message: UnsafeRawBufferPointer {
        let text: StaticString = "message"
        return UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }
}
