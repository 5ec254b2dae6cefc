/// The id of a message as a cursor (docs/spreadbot.md, B7).
package enum SpreadbotID {
    /// Of bytes: servers take no header that is much longer, and a session keeps many.
    package static let longest = 4096

    /// Whether an id can be told to the server in a header. One that cannot is no cursor: with it
    /// every attempt would fail.
    package static func isCursor(_ id: UnsafeRawBufferPointer) -> Bool {
        !id.isEmpty && id.count <= longest && !id.contains { $0 < 0x20 || $0 == 0x7F }
            && UTF8Validator.isValid(id)
    }
}
