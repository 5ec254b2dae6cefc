/// Decodes the body of an HTTP response in the codings that its Content-Encoding lists (RFC 9110
/// §8.4). It decodes piece by piece, never more than the caller has room for. Input that is not
/// decoded yet stays with the caller, so a decompression bomb takes no memory unless the caller
/// asks for more output.
package final class ContentDecoder {
    package enum Failure: Error, Equatable {
        /// The name of a coding whose library is not installed. The server was not offered it.
        case unsupported(String)
        /// More codings than `mostCodings`.
        case tooMany(Int)
        /// The text names the coding and the fault.
        case damaged(String)
        /// The body ended inside the data of this coding.
        case cutShort(String)
        case noMemory
    }

    package struct Step: Equatable {
        package var consumed = 0
        package var produced = 0
    }

    /// The most codings on top of each other. Servers use one, and a proxy may add another. Each
    /// can keep a window of 16 MiB (br) and multiply the output of the one before.
    package static let mostCodings = 3
    /// `decode` returns when all codings together have done this much work. A byte produced counts
    /// as one, a byte consumed as `ContentCoding.inputCost`.
    private static let workPerCall = 128 << 10
    /// The most output of one coding that waits for the next one.
    private static let betweenBytes = 16 << 10

    /// The codings that this process can decode, for Accept-Encoding. The first use loads the
    /// libraries.
    package static var acceptedCodings: String { ContentCoding.available }

    /// From Content-Encoding, in the order in which the server applied them.
    private let codings: [ContentCoding]
    private var links: [Link] = []
    /// Whether `decode` can return more output without further input.
    package private(set) var hasMore = false
    private var failure: Failure?

    /// One coding, with the input that waits for it.
    private final class Link {
        let coding: ContentCoding
        let stream: any CodedStream
        /// Output of the previous link; the first link reads the caller's input instead.
        var input = ByteBuffer()
        /// Its last output filled all available space.
        var hasMore = false
        var hasBegun = false
        var fault: String?

        convenience init?(_ coding: ContentCoding) {
            guard let stream = coding.makeStream() else { return nil }
            self.init(coding, stream)
        }

        private init(_ coding: ContentCoding, _ stream: any CodedStream) {
            self.coding = coding
            self.stream = stream
        }
    }

    /// nil if there is nothing to decode. The codings are undone from the last one on, up to a name
    /// that is not that of a coding. Like browsers, we then pass the body on.
    /// - Parameter contentEncoding: the values of all Content-Encoding fields. `decode` reports
    ///   codings whose library is missing, since a response without a body may name any.
    package convenience init?(contentEncoding: [String]) {
        var codings: [ContentCoding] = []
        undoing: for value in contentEncoding.reversed() {
            for element in value.utf8.split(separator: UInt8(ascii: ",")).reversed() {
                let name = String(Substring(element.trimmingBlanks))
                if name.isEmpty || ContentDecoder.isNoCoding(name) { continue }
                guard let coding = ContentCoding(name: name) else { break undoing }
                codings.append(coding)
            }
        }
        if codings.isEmpty { return nil }
        self.init(codings.reversed())
    }

    private init(_ codings: [ContentCoding]) { self.codings = codings }

    /// Some servers use one of these words to say that there is no coding, or give the character
    /// set.
    private static func isNoCoding(_ name: String) -> Bool {
        ["identity", "none", "utf-8", "utf8", "us-ascii", "iso-8859-1"].contains {
            name.equalsIgnoringASCIICase($0)
        }
    }

    /// Decodes some of the input. Call it again while `hasMore` is true, and with the bytes that it
    /// did not consume, followed by the next ones. If the input is damaged, it first returns the
    /// output up to the damage, and the next call throws.
    /// - Parameter output: not empty. The call returns when it is full, when the input is used up,
    ///   or after much work.
    package func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(Failure) -> Step {
        if let failure { throw failure }
        if links.isEmpty { try open() }
        var step = Step()
        var work = 0
        hasMore = true
        while step.produced < output.count, work < ContentDecoder.workPerCall {
            let before = work
            // The last coding runs first, which makes room for the others.
            for index in links.indices.reversed() {
                work += run(index, input, output, &step)
            }
            if work > before { continue }
            failure = fault
            // The next call throws the failure.
            hasMore = failure != nil
            break
        }
        if step == Step(), let failure { throw failure }
        return step
    }

    /// Lets one coding consume and produce as much as possible.
    /// - Returns: how much work that was; 0 if it cannot do anything now.
    private func run(
        _ index: Int, _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer,
        _ step: inout Step
    ) -> Int {
        let link = links[index]
        guard link.fault == nil else { return 0 }
        let waiting =
            index == 0
            ? UnsafeRawBufferPointer(rebasing: input[step.consumed...]) : link.input.readable
        let most = ContentDecoder.workPerCall / 2 / link.coding.inputCost
        let piece = UnsafeRawBufferPointer(rebasing: waiting.prefix(most))
        guard !piece.isEmpty || link.hasMore else { return 0 }
        let isLast = index == links.count - 1
        let room: UnsafeMutableRawBufferPointer
        if isLast {
            room = UnsafeMutableRawBufferPointer(rebasing: output[step.produced...])
        } else {
            let free = ContentDecoder.betweenBytes - links[index + 1].input.count
            let space = links[index + 1].input.reserve(free)
            room = UnsafeMutableRawBufferPointer(rebasing: space.prefix(free))
        }
        guard !room.isEmpty else { return 0 }
        let done = link.stream.decode(piece, into: room)
        link.fault = done.fault
        link.hasBegun = true
        link.hasMore = done.fault == nil && done.produced == room.count
        if index == 0 { step.consumed += done.consumed } else { link.input.consume(done.consumed) }
        if isLast {
            step.produced += done.produced
        } else {
            links[index + 1].input.commit(done.produced)
        }
        let work = done.consumed * link.coding.inputCost + done.produced
        if work == 0, !piece.isEmpty, link.fault == nil { link.fault = "data: no progress" }
        return work
    }

    /// The failure of the first coding that has one; the others cannot continue after it.
    private var fault: Failure? {
        for link in links {
            if let fault = link.fault { return .damaged("\(link.coding.rawValue) \(fault)") }
        }
        return nil
    }

    private func open() throws(Failure) {
        guard codings.count <= ContentDecoder.mostCodings else { throw .tooMany(codings.count) }
        // The coding that was applied last is undone first.
        var opened: [Link] = []
        for coding in codings.reversed() {
            guard coding.isAvailable else { throw .unsupported(coding.rawValue) }
            guard let link = Link(coding) else { throw .noMemory }
            opened.append(link)
        }
        links = opened
    }

    /// Called at the end of the body. Throws if the body is incomplete.
    package func finish() throws(Failure) {
        if let failure { throw failure }
        for (index, link) in links.enumerated() where !link.stream.isWhole {
            // A coding may get no bytes at all, which stands for an empty body.
            if index > 0, !link.hasBegun { continue }
            throw .cutShort(link.coding.rawValue)
        }
    }
}

extension ContentDecoder.Failure {
    /// Whether the server would send the same again.
    package var isFinal: Bool {
        switch self {
        case .unsupported, .tooMany: true
        case .damaged, .cutShort, .noMemory: false
        }
    }

    /// The error for the user.
    /// - Parameter peer: the names of the server and of the proxy, if there is one.
    package func error(from peer: String) -> RealtimeError {
        switch self {
        case .unsupported(let name):
            RealtimeError(
                .protocolViolation,
                "\(peer) answered with the content coding \(name.quoted(upTo: 60)), which is not"
                    + " supported (\(ContentDecoder.acceptedCodings))")
        case .tooMany(let count):
            RealtimeError(
                .protocolViolation,
                "\(peer) answered with \(count) content codings on top of each other, at most"
                    + " \(ContentDecoder.mostCodings) are decoded")
        case .damaged(let what):
            RealtimeError(.protocolViolation, "the body from \(peer) is damaged: \(what)")
        case .cutShort(let coding):
            RealtimeError(
                .protocolViolation, "the body from \(peer) ended inside its \(coding) data")
        case .noMemory:
            RealtimeError(.system, "there is no memory to decode the body from \(peer)")
        }
    }
}
