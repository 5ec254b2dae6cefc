import CShims
import Glibc
import Wire

/// What libcurl's results mean to a user.
enum CurlFailure {
    private static let needDescriptors = [
        CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY,
        CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CONNECT_ERROR,
    ]

    /// - Parameters:
    ///   - errorText: libcurl's error buffer.
    ///   - what: what failed, naming the host.
    ///   - isConnecting: no request has been sent, so no other answer than a proxy's was read.
    static func error(
        _ result: CURLcode, _ errorText: UnsafePointer<CChar>, _ what: String, isConnecting: Bool
    ) -> RealtimeError {
        let detail = String(cString: errorText)
        let cause = detail.isEmpty ? String(cString: curl_easy_strerror(result)) : detail
        // libcurl says of a socket that could not be made, or of a file that could not be opened,
        // that the peer or the file is at fault.
        let shortage = rt_descriptor_shortage()
        if shortage != 0, needDescriptors.contains(result) {
            return Loop.systemError(
                "\(what): no descriptor is free, see \"ulimit -n\"", shortage)
        }
        return RealtimeError(code(result, isConnecting), "\(what): \(cause)")
    }

    private static func code(_ result: CURLcode, _ isConnecting: Bool) -> RealtimeError.Code {
        switch result {
        case CURLE_COULDNT_RESOLVE_HOST: .resolve
        case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY: .proxy
        // While a connection is made, TLS has errors of its own, and HTTP begins when libcurl is
        // done: what is read then is a proxy's.
        case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_WEIRD_SERVER_REPLY:
            isConnecting ? .proxy : .connectionLost
        case CURLE_OPERATION_TIMEDOUT: .timeout
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
            CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR,
            CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CRL_BADFILE,
            CURLE_USE_SSL_FAILED, CURLE_SSL_ENGINE_INITFAILED:
            .tls
        case CURLE_OUT_OF_MEMORY, CURLE_FAILED_INIT: .system
        case CURLE_PARTIAL_FILE, CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_BAD_CONTENT_ENCODING,
            CURLE_UNSUPPORTED_PROTOCOL, CURLE_WRITE_ERROR:
            .connectionLost
        default: isConnecting ? .connect : .connectionLost
        }
    }
}
