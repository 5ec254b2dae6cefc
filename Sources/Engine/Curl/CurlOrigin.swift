import CShims
import Wire

/// The scheme, host and port of a URL, parsed once. libcurl would parse and format a URL string for
/// each exchange: a seventh of its work for a short one.
final class CurlOrigin {
    private let text: String
    private let parts: OpaquePointer

    private init(_ text: String, _ parts: OpaquePointer) {
        self.text = text
        self.parts = parts
    }

    convenience init(_ url: HTTPURL) throws(RealtimeError) {
        guard let parts = curl_url() else {
            throw RealtimeError(.system, "libcurl could not make a URL")
        }
        self.init(url.connectURL + "/", parts)
        let code = curl_url_set(parts, CURLUPART_URL, text, 0)
        guard code == CURLUE_OK else {
            throw RealtimeError(
                .invalidURL,
                "libcurl does not accept the URL \(text.quoted(upTo: 200)):"
                    + " \(String(cString: curl_url_strerror(code)))")
        }
    }

    /// Called when no handle uses it any more.
    deinit { curl_url_cleanup(parts) }

    /// Sets the origin on a handle, until it gets another or is freed.
    func set(on easy: UnsafeMutableRawPointer) {
        // libcurl uses this one if it repeats a request itself.
        _ = shim_curl_set_string(easy, CURLOPT_URL, text)
        _ = shim_curl_set_pointer(easy, CURLOPT_CURLU, UnsafeMutableRawPointer(parts))
    }
}
