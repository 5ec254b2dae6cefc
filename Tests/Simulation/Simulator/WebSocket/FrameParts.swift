/// Follows a server's frames byte by byte, to know which bytes belong to messages.
struct FrameParts {
    private var header: [UInt8] = []
    /// Bytes of the payload that are missing.
    private var left = 0
    private var isData = false

    /// - Returns: whether any of the bytes belongs to a data frame.
    mutating func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var hasData = false
        var at = 0
        while at < bytes.count {
            if left > 0 {
                let count = min(left, bytes.count - at)
                left -= count
                at += count
            } else {
                take(bytes[at])
                at += 1
            }
            if isData { hasData = true }
        }
        return hasData
    }

    /// So many bytes of a payload came in another way.
    mutating func skip(_ count: Int) { left -= min(left, count) }

    private mutating func take(_ byte: UInt8) {
        header.append(byte)
        isData = header[0] & 8 == 0
        guard header.count >= 2 else { return }
        let short = Int(header[1] & 127)
        let digits = short == 126 ? 2 : short == 127 ? 8 : 0
        guard header.count == 2 + digits else { return }
        left = digits == 0 ? short : max(0, header[2...].reduce(0) { $0 << 8 | Int($1) })
        header = []
    }
}
