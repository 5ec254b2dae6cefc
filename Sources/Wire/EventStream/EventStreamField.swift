extension EventStreamParser {
    /// The kinds of line (HTML Living Standard §9.2.6).
    enum Field {
        case data, event, id, retry, comment

        /// The only field whose name begins with this byte.
        init?(firstByte: UInt8) {
            switch firstByte {
            case UInt8(ascii: "d"): self = .data
            case UInt8(ascii: "e"): self = .event
            case UInt8(ascii: "i"): self = .id
            case UInt8(ascii: "r"): self = .retry
            default: return nil
            }
        }

        var name: StaticString {
            switch self {
            case .data: "data"
            case .event: "event"
            case .id: "id"
            case .retry: "retry"
            case .comment: ""
            }
        }
    }
}
