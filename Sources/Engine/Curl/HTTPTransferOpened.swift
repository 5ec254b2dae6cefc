import CShims
import Wire

extension HTTPTransfer {
    /// What is told of the connection that it is on.
    /// - Parameter head: of its answer.
    func opened(_ head: ResponseHead?) -> Opened {
        var opened = Opened()
        opened.response = head.map { HTTPResponse($0, body: []) }
        guard isOpen else { return opened }
        opened.httpVersion = httpVersion
        opened.setAddresses { shim_curl_addresses(easy, $0, $1, $2) }
        if handle.way.isSecure { opened.setTLS(handle.tlsGuard) }
        return opened
    }
}

extension Opened {
    /// - Parameter write: writes the remote and the local address into texts of this size.
    mutating func setAddresses(
        _ write: (UnsafeMutablePointer<CChar>?, UnsafeMutablePointer<CChar>?, Int) -> Void
    ) {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 2 * Opened.longestAddress) { room in
            guard let remote = room.baseAddress else { return }
            let local = remote + Opened.longestAddress
            write(remote, local, Opened.longestAddress)
            remoteAddress = String(cString: remote)
            localAddress = String(cString: local)
        }
    }

    /// The path of a Unix socket has at most 108 bytes.
    private static let longestAddress = 128

    mutating func setTLS(_ connection: UnsafeMutablePointer<shim_tls_guard>?) {
        guard let connection else { return }
        tlsVersion = connection.pointee.version.map { String(cString: $0) } ?? ""
        tlsCipher = connection.pointee.cipher.map { String(cString: $0) } ?? ""
    }
}
