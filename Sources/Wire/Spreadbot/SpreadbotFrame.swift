/// A message of Nchan's WebSocket subprotocol: header lines, a blank line, the payload
/// (docs/spreadbot.md, B6).
package struct SpreadbotFrame {
    package static let subprotocol = "ws+meta.nchan"

    /// Parts of the frame; nil for a missing header, or an id that is not a cursor.
    package private(set) var id: UnsafeRawBufferPointer?
    package private(set) var event: UnsafeRawBufferPointer?
    package private(set) var contentType: UnsafeRawBufferPointer?
    package private(set) var data: UnsafeRawBufferPointer

    /// - Returns: nil if there is no blank line, or a line before it is not a header.
    package init?(parsing frame: UnsafeRawBufferPointer) {
        var rest = frame
        data = frame
        while true {
            guard let end = rest.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
            let line = UnsafeRawBufferPointer(rebasing: rest[..<end])
            rest = UnsafeRawBufferPointer(rebasing: rest[(end + 1)...])
            if line.isEmpty { break }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0 else { return nil }
            var value = line[(colon + 1)...]
            if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
            set(line[..<colon], UnsafeRawBufferPointer(rebasing: value))
        }
        data = rest
    }

    private mutating func set(
        _ name: Slice<UnsafeRawBufferPointer>, _ value: UnsafeRawBufferPointer
    ) {
        if name.elementsEqual("id".utf8) {
            id = SpreadbotID.isCursor(value) ? value : nil
        } else if name.elementsEqual("event".utf8) {
            event = value
        } else if name.elementsEqual("content-type".utf8) {
            contentType = value
        }
    }
}
