import CShims
import Glibc
import Session
import Wire

/// The route to a host: direct, by a Unix socket, or through a proxy.
struct CurlRoute {
    /// The proxy's URL as it was set.
    let proxyURL: String?
    /// Host and port, for messages.
    private let host: String
    /// The intermediary, for messages: " through the proxy …"; "" for none.
    let detour: String

    /// Host and port of the proxy; nil for none.
    let proxyName: String?
    /// Whether the host itself uses TLS.
    let isSecure: Bool
    /// Whether a proxy must open a tunnel.
    let isTunnel: Bool
    /// Whether the proxy speaks SOCKS.
    let isSOCKS: Bool
    /// Where the connection leads to first; nil for a Unix socket.
    let dialTarget: ConnectTarget?
    /// Whether the proxy gets the request itself, with an absolute URL (RFC 9112 §3.2.2).
    var isForwarded: Bool { proxyURL != nil && !isTunnel }

    init(to url: HTTPURL, by network: NetworkConfiguration) {
        proxyURL = network.proxyURL(to: url) { name in
            getenv(name).map { String(cString: $0) }
        }
        host = url.displayName
        isSecure = url.isSecure
        isSOCKS = proxyURL?.prefix(5).equalsIgnoringASCIICase("socks") ?? false
        isTunnel = proxyURL != nil && (url.isSecure || isSOCKS)
        proxyName = proxyURL.map { ProxyURL.displayName(of: $0) }
        dialTarget =
            network.unixSocket == nil
            ? ConnectTarget(of: url, by: network, proxyURL: proxyURL) : nil
        detour =
            network.unixSocket.map { " by the socket \($0)" }
            ?? proxyName.map { " through the proxy \($0)" } ?? ""
    }

    /// Whether the proxy itself uses TLS. Then libcurl encrypts all bytes on the socket.
    var isProxySecure: Bool {
        proxyURL?.prefix(6).equalsIgnoringASCIICase("https:") ?? false
    }
}

extension CurlRoute: CustomStringConvertible {
    /// Host and port of the destination.
    var target: String { host }
    var description: String { host + detour }
}
