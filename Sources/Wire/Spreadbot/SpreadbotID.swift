/// The rules for a message's id to serve as a cursor (docs/spreadbot.md, B7).
package enum SpreadbotID {
    /// The most bytes. Servers reject much longer headers, and a session keeps many ids.
    package static let longest = 4096

    /// Whether an id can be sent to the server in a header. One that cannot is not a cursor,
    /// because every attempt with it would fail.
    package static func isCursor(_ id: UnsafeRawBufferPointer) -> Bool {
        !id.isEmpty && id.count <= longest && !id.contains { $0 < 0x20 || $0 == 0x7F }
            && UTF8Validator.isValid(id)
    }
}
