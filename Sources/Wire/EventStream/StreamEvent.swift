/// One event of a stream. Each text is UTF-8 with a NUL behind it, outside its length, and valid
/// until the parser reads on.
package struct StreamEvent {
    /// The last event id, sticky; maybe empty.
    package let id: UnsafeRawBufferPointer
    /// "message" when the stream named none.
    package let type: UnsafeRawBufferPointer
    package let data: UnsafeRawBufferPointer
    /// Whether this very event had an id.
    package let hadID: Bool

    /// Whether its type is "message".
    package let isMessage: Bool

    static var message: UnsafeRawBufferPointer {
        let text: StaticString = "message"
        return UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }
}
