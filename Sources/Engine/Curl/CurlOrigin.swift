import CShims
import Wire

/// Where exchanges go: scheme, host and port, taken apart once. A URL that libcurl is given as
/// text it takes apart, and puts together again, for each exchange: a seventh of its work with a
/// short one.
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
                "libcurl does not take \(text.quoted(upTo: 200)):"
                    + " \(String(cString: curl_url_strerror(code)))")
        }
    }

    /// When no handle has it any more.
    deinit { curl_url_cleanup(parts) }

    /// Until the handle has another, or is freed.
    func set(on easy: UnsafeMutableRawPointer) {
        // What libcurl takes again when it repeats a request of its own accord.
        _ = shim_curl_set_string(easy, CURLOPT_URL, text)
        _ = shim_curl_set_pointer(easy, CURLOPT_CURLU, UnsafeMutableRawPointer(parts))
    }
}
