import CShims
import Glibc
import Session
import Wire

// Finds out why an exchange failed.
extension HTTPTransfer {
    func failure(_ result: CURLcode) -> HTTPFailure? {
        if result == CURLE_OK {
            return isCut ? HTTPFailure(CurlFailure.cut(on: handle.route)) : unfinishedCoding
        }
        let isConnecting = handle.requestDelay == 0
        let route = handle.route
        if handle.wasKeptBack { return staleConnection }
        if isFlooded {
            return HTTPFailure(CurlFailure.flood(on: route), precedesRequest: isConnecting)
        }
        if isConnecting, result == CURLE_ABORTED_BY_CALLBACK {
            return HTTPFailure(TunnelAnswer.error(on: route), precedesRequest: true)
        }
        if let error = CurlFailure.head(headReader, result, handle.errorText, on: route) {
            return HTTPFailure(error, head: headReader.refused)
        }
        if let what = requestBody.failure {
            return HTTPFailure(
                RealtimeError(what.code, "the body of the request to \(route) \(what.text)"))
        }
        if isStale(result) { return staleConnection }
        if refusal.holds, !isAnswered {
            return HTTPFailure(
                RealtimeError(
                    .connectionLost, "\(route) refused the request on its HTTP/2 connection"),
                precedesRequest: true)
        }
        if isConnecting, result == CURLE_OPERATION_TIMEDOUT, dialing.limit > .zero,
            shim_curl_os_error(easy) != ETIMEDOUT
        {
            return HTTPFailure(late(dialing.limitText), precedesRequest: true)
        }
        let error = CurlFailure.error(
            result, handle.errorText, of: easy, on: route, isConnecting: isConnecting)
        return HTTPFailure(
            error, precedesRequest: isConnecting,
            isFinal: result == CURLE_SSL_PINNEDPUBKEYNOTMATCH,
            head: error.code == .protocolViolation ? headReader.refused : nil)
    }

    private var unfinishedCoding: HTTPFailure? {
        do throws(ContentDecoder.Failure) {
            try decoder?.finish()
            return nil
        } catch {
            if case .cutShort = error, mayEndInCoding { return nil }
            return HTTPFailure(error.error(from: "\(handle.route)"), isFinal: error.isFinal)
        }
    }

    /// The response ended with its connection, but without TLS's close_notify, so the end may be
    /// forged (RFC 9112 §9.8). HTTP/2 marks the end of each stream.
    private var isCut: Bool {
        guard let tlsGuard = handle.tlsGuard, tlsGuard.pointee.is_cut else { return false }
        return isEndedByClose && httpVersion < 20
    }

    private var staleConnection: HTTPFailure {
        let text = "\(handle.route) closed the connection before a response"
        return HTTPFailure(
            RealtimeError(.connectionLost, text),
            precedesRequest: handle.wasCut || refusal.holds, isStale: true)
    }

    /// Whether a kept connection ended before the response began (R6). libcurl repeats such a
    /// request itself, unless it was still sending its body, or the request goes out once.
    private func isStale(_ result: CURLcode) -> Bool {
        switch result {
        case CURLE_SEND_FAIL_REWIND: true
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING:
            handle.wasReused && !headReader.hasBegun
        default: false
        }
    }
}
