import CShims
import Glibc
import Session
import Wire

/// The way to a host: to itself, by a Unix socket, or through a proxy.
struct CurlWay {
    /// The proxy's URL, as it was given.
    let proxyURL: String?
    /// Host and port, for messages.
    private let host: String
    /// What is between, for messages: " through the proxy …"; "" for nothing.
    let detour: String

    /// Host and port of the proxy; nil without any.
    let proxyName: String?
    /// TLS is spoken to the host.
    let isSecure: Bool
    /// A proxy is asked for a tunnel.
    let isTunnel: Bool
    /// The request itself goes to the proxy, with its whole URL (RFC 9112 §3.2.2).
    var isForwarded: Bool { proxyURL != nil && !isTunnel }

    init(to url: HTTPURL, by network: NetworkConfiguration) {
        proxyURL = network.proxyURL(to: url) { name in
            getenv(name).map { String(cString: $0) }
        }
        host = url.displayName
        isSecure = url.isSecure
        let isSOCKS = proxyURL?.prefix(5).equalsIgnoringASCIICase("socks") ?? false
        isTunnel = proxyURL != nil && (url.isSecure || isSOCKS)
        proxyName = proxyURL.map { ProxyURL.displayName(of: $0) }
        detour =
            network.unixSocket.map { " by the socket \($0)" }
            ?? proxyName.map { " through the proxy \($0)" } ?? ""
    }

    func set(on easy: UnsafeMutableRawPointer) {
        // It is decided already, for errors to name the same proxy; "" makes libcurl look at no
        // variable.
        _ = shim_curl_set_string(easy, CURLOPT_PROXY, proxyURL ?? "")
        _ = shim_curl_set_string(easy, CURLOPT_NOPROXY, "")
    }

    /// Whether the proxy is spoken to by TLS: then the bytes on the socket are libcurl's.
    var isProxySecure: Bool {
        proxyURL?.prefix(6).equalsIgnoringASCIICase("https:") ?? false
    }
}

extension CurlWay: CustomStringConvertible {
    /// Host and port that it leads to.
    var target: String { host }
    var description: String { host + detour }
}
