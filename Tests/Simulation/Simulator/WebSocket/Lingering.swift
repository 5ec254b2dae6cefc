import Session

/// Ignores what the peer sends after the end was reported, until it closes, as
/// `LingeringTransport` does in Engine.
final class Lingering: EndpointOwner {
    private let endpoint: Endpoint
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
    private var ignored = 0

    init(_ world: World, _ endpoint: Endpoint) {
        self.endpoint = endpoint
        endpoint.owner = self
        endpoint.watch(.readable)
        world.after(.seconds(2)) { endpoint.close() }
    }

    deinit { buffer.deallocate() }

    func ready(_ events: Endpoint.Events) {
        while true {
            switch endpoint.read(into: buffer) {
            case .bytes(let count):
                ignored += count
                if ignored > 2 << 20 { return endpoint.close() }
            case .wouldBlock: return
            case .end, .reset: return endpoint.close()
            }
        }
    }
}
