import CShims
import Glibc
import Session
import Wire

/// What libcurl's results mean to a user.
enum CurlFailure {
    private static let needDescriptors = [
        CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY,
        CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CONNECT_ERROR,
    ]

    /// - Parameters:
    ///   - errorText: libcurl's error buffer.
    ///   - isConnecting: no request has been sent, so no other answer than a proxy's was read.
    static func error(
        _ result: CURLcode, _ errorText: UnsafePointer<CChar>, on way: CurlWay, isConnecting: Bool
    ) -> RealtimeError {
        let detail = String(cString: errorText)
        let cause = detail.isEmpty ? String(cString: curl_easy_strerror(result)) : detail
        // libcurl says of a socket that could not be made, or of a file that could not be opened,
        // that the peer or the file is at fault.
        let shortage = rt_descriptor_shortage()
        if shortage != 0, needDescriptors.contains(result) {
            return Loop.systemError(
                "cannot connect to \(way): no descriptor is free, see \"ulimit -n\"", shortage)
        }
        if isConnecting {
            let code = connectingCode(result, isProxied: way.proxyURL != nil)
            return RealtimeError(code, "cannot connect to \(way): \(cause)")
        }
        return RealtimeError(
            anyCode(result) ?? .connectionLost, "the exchange with \(way) failed: \(cause)")
    }

    private static func connectingCode(
        _ result: CURLcode, isProxied: Bool
    ) -> RealtimeError.Code {
        if let code = anyCode(result) { return code }
        return switch result {
        // Of a name that this side looks up, which it does for a proxy by SOCKS too.
        case CURLE_COULDNT_RESOLVE_HOST: .resolve
        case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY: .proxy
        // TLS has errors of its own, and HTTP begins when libcurl is done: what cannot be reached,
        // or is read and makes no sense, is the proxy.
        default: isProxied ? .proxy : .connect
        }
    }

    /// The code of a result that means the same at any time.
    private static func anyCode(_ result: CURLcode) -> RealtimeError.Code? {
        switch result {
        case CURLE_OPERATION_TIMEDOUT: .timeout
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
            CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR,
            CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CRL_BADFILE,
            CURLE_USE_SSL_FAILED, CURLE_SSL_ENGINE_INITFAILED:
            .tls
        case CURLE_OUT_OF_MEMORY, CURLE_FAILED_INIT: .system
        default: nil
        }
    }
}
