import CShims
import Glibc
import Session
import Wire

/// Translates libcurl's results to errors for users.
enum CurlFailure {
    private static let needDescriptors = [
        CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY,
        CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CONNECT_ERROR,
    ]

    /// - Parameters:
    ///   - errorText: libcurl's error buffer.
    ///   - easy: the handle that failed.
    ///   - isConnecting: no request was sent, so only a proxy can have responded.
    static func error(
        _ result: CURLcode, _ errorText: UnsafePointer<CChar>, of easy: UnsafeMutableRawPointer,
        on route: CurlRoute, isConnecting: Bool
    ) -> RealtimeError {
        let detail = withoutURL(String(cString: errorText))
        let cause = detail.isEmpty ? String(cString: curl_easy_strerror(result)) : detail
        // If a socket or file could not be opened, libcurl blames the peer or the file.
        let shortage = shim_descriptor_shortage()
        if shortage != 0, needDescriptors.contains(result) {
            return Dial.shortage(shortage, "\(route)")
        }
        if isConnecting {
            let code = connectingCode(result, isProxied: route.proxyURL != nil)
            let status = Int(shim_curl_connect_status(easy))
            if code == .proxy, status >= 300 { return refusal(status, on: route) }
            let systemError = result == CURLE_COULDNT_CONNECT ? shim_curl_os_error(easy) : 0
            let why =
                code == .timeout && awaitsTLS(easy, route)
                ? silentTLS : reason(result, cause, code, systemError, route)
            return RealtimeError(
                code, "cannot connect to \(route): \(why)", systemError: systemError)
        }
        let code = exchangeCode(result, errorText)
        let what =
            code == .protocolViolation
            ? "the response from \(route) is not valid HTTP" : "the exchange with \(route) failed"
        return RealtimeError(code, "\(what): \(cause)")
    }

    /// The error for an attempt whose time ended before there was a connection.
    /// - Parameter time: the limit, and the option that sets it.
    static func late(
        _ time: String, of easy: UnsafeMutableRawPointer, on route: CurlRoute
    ) -> RealtimeError {
        let why = awaitsTLS(easy, route) ? ": \(silentTLS)" : ""
        return RealtimeError(.timeout, "cannot connect to \(route) within \(time)\(why)")
    }

    /// The same while it is still connecting.
    /// - Parameter dial: what connects; nil if it has begun nothing yet.
    static func late(_ time: String, _ dial: Dial?, on route: CurlRoute) -> RealtimeError {
        let delay = dial?.delay ?? ""
        let why = delay.isEmpty ? "" : ": \(delay)"
        return RealtimeError(.timeout, "cannot connect to \(route) within \(time)\(why)")
    }

    private static let silentTLS =
        "the TLS handshake timed out; the server may not speak TLS at this port"

    /// Whether the server accepted the connection, but does not finish the TLS handshake.
    private static func awaitsTLS(_ easy: UnsafeMutableRawPointer, _ route: CurlRoute) -> Bool {
        route.isSecure && route.proxyURL == nil && shim_curl_awaits_tls(easy)
    }

    /// The error for a proxy that refuses the tunnel, with its response.
    private static func refusal(_ status: Int, on route: CurlRoute) -> RealtimeError {
        let proxy = route.proxyName
        var head = ResponseHead(status: status)
        head.proxy = proxy
        return RealtimeError(
            .proxy, "the proxy \(proxy ?? "") answered \(status) to CONNECT \(route.target)",
            response: HTTPResponse(head, body: []))
    }

    /// Why there is no connection, without repeating the host.
    private static func reason(
        _ result: CURLcode, _ cause: String, _ code: RealtimeError.Code, _ systemError: Int32,
        _ route: CurlRoute
    ) -> String {
        switch result {
        case CURLE_COULDNT_CONNECT where systemError != 0:
            return String(cString: strerror(systemError)).withLowercasedFirst
        case CURLE_COULDNT_RESOLVE_HOST: return "its name cannot be resolved"
        case CURLE_COULDNT_RESOLVE_PROXY: return "the proxy's name cannot be resolved"
        case CURLE_OPERATION_TIMEDOUT: return "timed out"
        case CURLE_SSL_CACERT_BADFILE:
            // libcurl quotes the name; options are checked, but the environment may have anything.
            let names = CurlAuthorities.variables(in: cause)
            return FileName.isPEM(cause)
                ? "PEM text is given instead of the name of a file with it\(names)" : cause + names
        default: break
        }
        guard code == .tls else { return cause }
        // OpenSSL's errors for a plain-text response to its first message.
        let isPlain = cause.withCString {
            strstr($0, "wrong version number") != nil || strstr($0, "packet length too long") != nil
                || strstr($0, "http request") != nil
        }
        if isPlain {
            return route.isProxySecure
                ? "this port, of the proxy or of the server, does not speak TLS"
                : "this port does not speak TLS: use http:// or ws://, or turn TLS off"
        }
        // What servers of other protocols do with OpenSSL's first message, which they cannot read.
        let isEnd = cause.withCString {
            strstr($0, "SSL_ERROR_SYSCALL") != nil || strstr($0, "unexpected eof") != nil
                || strstr($0, "reset by peer") != nil
        }
        guard isEnd else { return "TLS: \(cause)" }
        return "the connection was ended during the TLS handshake;"
            + " probably this port does not speak TLS"
    }

    /// What is wrong with a response's head or trailers; nil for nothing.
    static func head(
        _ head: CurlHead, _ result: CURLcode, _ errorText: UnsafePointer<CChar>, on route: CurlRoute
    ) -> RealtimeError? {
        if let fault = head.fault { return RealtimeError(.protocolViolation, "\(route) \(fault)") }
        if head.isTooLarge {
            let what = head.isDone ? "headers and trailers" : "headers"
            return RealtimeError(
                .tooLarge, "\(route) answered with more than \(CurlHead.limit) bytes of \(what)")
        }
        // libcurl's own limits (7.88), which have no error code: 1 MiB for a line, 300 KiB for
        // heads, 128 KiB for HTTP/2's, 4 KiB for a trailer.
        let isLineTooLong = result == CURLE_OUT_OF_MEMORY && !head.isDone
        let isTrailerTooLong = strstr(errorText, "Out of memory in chunked") != nil
        let isHeadTooLong =
            isTrailerTooLong || strstr(errorText, "Too large response headers") != nil
            || strstr(errorText, "returned -902") != nil
        guard isLineTooLong || result == CURLE_RECV_ERROR && isHeadTooLong else { return nil }
        let what = isTrailerTooLong ? "a trailer that is too long" : "headers that are too long"
        return RealtimeError(.tooLarge, "\(route) answered with \(what)")
    }

    /// The error for too many bytes without content.
    static func flood(on route: CurlRoute) -> RealtimeError {
        RealtimeError(
            .protocolViolation,
            "\(route) sent more than \(SHIM_TLS_IDLE_BYTES) bytes of TLS records or HTTP/2 frames"
                + " without content")
    }

    /// The error for a response that was ended by the end of the connection.
    static func cut(on route: CurlRoute) -> RealtimeError {
        RealtimeError(
            .connectionLost,
            "the connection to \(route) ended without TLS close_notify: the body may be cut short")
    }

    /// Hides a proxy's URL that libcurl cannot use and quotes, because it may contain a password.
    private static func withoutURL(_ text: String) -> String {
        guard let start = text.utf8.firstIndex(of: UInt8(ascii: "'")),
            text.hasPrefix("Unsupported proxy") || text.utf8.contains(UInt8(ascii: "@"))
        else { return text }
        return text[..<start] + "'***'"
    }

    private static func connectingCode(
        _ result: CURLcode, isProxied: Bool
    ) -> RealtimeError.Code {
        if let code = anyCode(result) { return code }
        return switch result {
        // A name that we look up ourselves, even for a proxy by SOCKS.
        case CURLE_COULDNT_RESOLVE_HOST: .resolve
        case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY: .proxy
        // TLS has its own errors, and HTTP only begins after libcurl has connected. So if there is
        // a proxy, it is at fault.
        default: isProxied ? .proxy : .connect
        }
    }

    private static func exchangeCode(
        _ result: CURLcode, _ errorText: UnsafePointer<CChar>
    ) -> RealtimeError.Code {
        if let code = anyCode(result) { return code }
        return switch result {
        // Without a text, the server closed the connection in order (GOAWAY).
        case CURLE_HTTP2 where errorText.pointee == 0: .connectionLost
        // No status line, an invalid header, an invalid trailer (a bad argument to libcurl's own
        // functions), or bad HTTP/2 framing.
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_HTTP2,
            CURLE_BAD_CONTENT_ENCODING, CURLE_WRITE_ERROR, CURLE_BAD_FUNCTION_ARGUMENT:
            .protocolViolation
        // libcurl has no code for these.
        case CURLE_RECV_ERROR
        where strstr(errorText, "chunk") != nil
            || strstr(errorText, "nghttp2_session_mem_recv() returned") != nil:
            .protocolViolation
        default: .connectionLost
        }
    }

    /// The code for results that mean the same at any time.
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
