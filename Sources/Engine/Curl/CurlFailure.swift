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
        let detail = withoutURL(String(cString: errorText))
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
        let code = exchangeCode(result, errorText)
        let what =
            code == .protocolViolation
            ? "the answer from \(way) is not valid HTTP" : "the exchange with \(way) failed"
        return RealtimeError(code, "\(what): \(cause)")
    }

    /// libcurl shows a proxy's URL that it cannot use, with whatever password is in it.
    private static func withoutURL(_ text: String) -> String {
        guard let start = text.utf8.firstIndex(of: UInt8(ascii: "'")),
            text.utf8.contains(UInt8(ascii: "@"))
        else { return text }
        return text[..<start] + "'***'"
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

    private static func exchangeCode(
        _ result: CURLcode, _ errorText: UnsafePointer<CChar>
    ) -> RealtimeError.Code {
        if let code = anyCode(result) { return code }
        return switch result {
        // Without a word, the connection was closed in order (GOAWAY).
        case CURLE_HTTP2 where errorText.pointee == 0: .connectionLost
        // No status line, a header that is none, framing of HTTP/2, a coding that is damaged or
        // that libcurl does not know; what is behind the end of a compressed body is an error in
        // writing to it.
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_HTTP2,
            CURLE_BAD_CONTENT_ENCODING, CURLE_WRITE_ERROR:
            .protocolViolation
        // It has no code of its own.
        case CURLE_RECV_ERROR where strstr(errorText, "chunk") != nil: .protocolViolation
        default: .connectionLost
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
