import Simulator
import Testing

@testable import Wire

typealias Told = NaiveEventStream.Told

func event(
    _ data: String, type: String = "message", id: String = "", hadID: Bool = false
) -> Told {
    .event(type: type, data: data, id: id, hadID: hadID)
}

/// A stream as our parser reads it, in the naive parser's types.
struct Heard {
    var told: [Told] = []
    var isTooLarge = false
    var lastEventID: [UInt8] = []
    var reconnectionTime: Int64?

    /// Feeds the pieces of one body, then ends it.
    init(
        _ pieces: [[UInt8]], _ limits: EventStreamParser.Limits = EventStreamParser.Limits(),
        lastEventID: [UInt8] = [], reportsComments: Bool = true
    ) {
        var parser = EventStreamParser(
            limits: limits, lastEventID: lastEventID, reportsComments: reportsComments)
        hear(pieces, &parser)
        parser.endBody()
        self.lastEventID = parser.lastEventID
        reconnectionTime = parser.reconnectionTime
    }

    /// Feeds more of a body that continues.
    init(continuing pieces: [[UInt8]], _ parser: inout EventStreamParser) {
        hear(pieces, &parser)
        lastEventID = parser.lastEventID
        reconnectionTime = parser.reconnectionTime
    }

    private mutating func hear(_ pieces: [[UInt8]], _ parser: inout EventStreamParser) {
        do throws(RealtimeError) {
            for piece in pieces { try hear(piece, &parser) }
        } catch {
            #expect(error.code == .tooLarge)
            isTooLarge = true
        }
    }

    private mutating func hear(
        _ piece: [UInt8], _ parser: inout EventStreamParser
    ) throws(RealtimeError) {
        // Each call gets the rest at another address: the parser must not keep pointers.
        var rest = piece
        while true {
            let (step, used) = try Heard.step(rest, &parser) { told.append($0) }
            rest = Array(rest[used...])
            if !step {
                #expect(rest.isEmpty)
                return
            }
        }
    }

    private static func step(
        _ bytes: [UInt8], _ parser: inout EventStreamParser, _ tell: (Told) -> Void
    ) throws(RealtimeError) -> (more: Bool, used: Int) {
        var used = 0
        let result = bytes.withUnsafeBytes { input -> Result<Bool, RealtimeError> in
            do throws(RealtimeError) {
                switch try parser.next(input, &used) {
                case .needMoreBytes: return .success(false)
                case .event(let event):
                    tell(
                        .event(
                            type: text(event.type), data: text(event.data), id: text(event.id),
                            hadID: event.hadID))
                case .comment(let comment): tell(.comment(text(comment)))
                case .retry(let milliseconds): tell(.retry(milliseconds))
                }
                return .success(true)
            } catch {
                return .failure(error)
            }
        }
        return (try result.get(), used)
    }

    /// Reported text is well-formed, and a NUL follows it.
    private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        #expect(bytes.baseAddress?.load(fromByteOffset: bytes.count, as: UInt8.self) == 0)
        let text = String(validating: bytes, as: UTF8.self)
        #expect(text != nil)
        return text ?? ""
    }
}

/// The stream must give these events: whole, byte by byte and cut at each offset; and naively.
func expect(
    _ stream: [UInt8], _ told: [Told], last: String? = nil, retry: Int64? = nil,
    seed: String = "", sourceLocation: SourceLocation = #_sourceLocation
) {
    let naive = NaiveEventStream(stream, lastEventID: Array(seed.utf8))
    #expect(naive.told == told, "naively", sourceLocation: sourceLocation)
    for pieces in splits(stream) {
        let heard = Heard(pieces, lastEventID: Array(seed.utf8))
        #expect(heard.told == told, "\(pieces)", sourceLocation: sourceLocation)
        #expect(heard.lastEventID == naive.lastEventID, sourceLocation: sourceLocation)
        #expect(heard.reconnectionTime == naive.reconnectionTime, sourceLocation: sourceLocation)
        if let last {
            #expect(heard.lastEventID == Array(last.utf8), sourceLocation: sourceLocation)
        }
        if let retry { #expect(heard.reconnectionTime == retry, sourceLocation: sourceLocation) }
    }
}

func expect(
    _ stream: String, _ told: [Told], last: String? = nil, retry: Int64? = nil,
    seed: String = "", sourceLocation: SourceLocation = #_sourceLocation
) {
    expect(
        Array(stream.utf8), told, last: last, retry: retry, seed: seed,
        sourceLocation: sourceLocation)
}
