import CShims
import Session
import Wire

extension HTTPTransfer {
    /// The connection that the exchange uses; nil for none.
    var connection: Shared<Opened>? { isOpen ? handle.opened(by: httpVersion) : nil }

    /// Bytes of the request's body that have arrived: the peer's kernel has acknowledged them.
    var bytesArrived: UInt64 { arrival?.count ?? 0 }

    /// How many they are, and how many milliseconds ago the last of them arrived. nil if the
    /// request is not being sent.
    private var arrival: (count: UInt64, age: UInt32)? {
        guard isOpen, isConnected, let seat, let socket = multi.sockets.socket(serving: seat) else {
            return nil
        }
        var age: UInt32 = 0
        let count = shim_curl_bytes_arrived(easy, socket, &age)
        return (count, age)
    }

    /// When the last bytes of the request's body arrived; nil if none did since the last call.
    /// libcurl may have passed them to the kernel long before.
    func bodyMoved(_ now: Instant) -> Instant? {
        guard let (count, milliseconds) = arrival, count > requestBody.arrived else { return nil }
        requestBody.arrived = count
        let age = UInt64(milliseconds) * 1_000_000
        return Instant(nanoseconds: now.nanoseconds - min(age, now.nanoseconds))
    }

    /// The argument of the open handler.
    /// - Parameter head: of the response.
    func opened(_ head: ResponseHead?) -> Opened {
        var opened = connection?.value ?? Opened()
        opened.response = head.map { HTTPResponse($0, body: []) }
        return opened
    }
}
