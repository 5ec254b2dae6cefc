/// A JSON text that was checked, for messages that contain it unchanged.
package struct JSONText: Sendable, Equatable {
    package let bytes: [UInt8]

    /// - Throws: `.invalidArgument` if the text is not JSON.
    package init(checking text: UnsafeRawBufferPointer) throws(RealtimeError) {
        var document = JSONDocument()
        do throws(RealtimeError) {
            bytes = try document.read(text) { root in Array(root.source) }
        } catch {
            throw RealtimeError(.invalidArgument, error.message)
        }
    }

    package init(checking text: String) throws(RealtimeError) {
        try self.init(checking: Array(text.utf8))
    }

    package init(checking bytes: [UInt8]) throws(RealtimeError) {
        self = try bytes.withUnsafeBufferPointer { text throws(RealtimeError) in
            try JSONText(checking: UnsafeRawBufferPointer(text))
        }
    }

    /// - Throws: `.invalidArgument` if the value has no JSON text, see `JSONValue.write`.
    package init(_ value: JSONValue) throws(RealtimeError) {
        var bytes: [UInt8] = []
        try value.write(to: &bytes)
        self.bytes = bytes
    }
}
