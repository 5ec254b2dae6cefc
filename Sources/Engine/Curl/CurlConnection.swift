import CShims
import Wire

/// The details of the connection that a handle's exchange uses. Kept between exchanges, so that a
/// connection is described only once.
struct CurlConnection {
    private var ends = shim_curl_ends()
    private var tls: UnsafeMutablePointer<shim_tls_guard>?
    private var description: Shared<Opened>?

    /// - Parameters:
    ///   - tls: the TLS connection, if it is one.
    ///   - path: the Unix socket that all connections of the handle use.
    mutating func opened(
        on easy: UnsafeMutableRawPointer, _ httpVersion: Int,
        _ tls: UnsafeMutablePointer<shim_tls_guard>?, _ path: String?
    ) -> Shared<Opened> {
        let isOther = shim_curl_find_ends(easy, &ends)
        if let description, !isOther, self.tls == tls, description.value.httpVersion == httpVersion
        {
            return description
        }
        self.tls = tls
        var opened = Opened()
        opened.httpVersion = httpVersion
        if let path {
            // libcurl would cut it off at the length of an IP address.
            opened.remoteAddress = path
        } else {
            opened.setAddresses { shim_curl_addresses(&ends, $0, $1, $2) }
        }
        opened.setTLS(tls)
        let new = Shared(opened)
        description = new
        return new
    }
}

extension Opened {
    /// - Parameter write: writes the remote and the local address into buffers of the given size.
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
