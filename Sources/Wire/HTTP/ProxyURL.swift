import CShims

/// A proxy's URL, as libcurl takes it.
package enum ProxyURL {
    package static let schemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]

    /// - Throws: `.unsupportedScheme`, or `.invalidURL`; the message shows neither user nor
    ///   password.
    package static func check(_ text: String) throws(RealtimeError) {
        func invalid(_ fault: String) -> RealtimeError {
            RealtimeError(.invalidURL, "The proxy \(HTTPURL.redacted(text)) \(fault)")
        }
        let bytes = text.utf8
        guard !bytes.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
            throw invalid("has a space or control character")
        }
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
            bytes[colon...].starts(with: "://".utf8)
        else { throw invalid("does not begin with a scheme, such as http:// or socks5h://") }
        let scheme = text[..<colon]
        guard schemes.contains(where: { $0.equalsIgnoringASCIICase(scheme) }) else {
            throw RealtimeError(
                .unsupportedScheme,
                "The proxy \(HTTPURL.redacted(text)) has the scheme"
                    + " \(scheme.quoted(upTo: 30)); \(schemes.joined(separator: ", ")) are known")
        }
        let handle = curl_url()
        defer { curl_url_cleanup(handle) }
        let flags = UInt32(CURLU_NON_SUPPORT_SCHEME)
        let code = text.withCString { curl_url_set(handle, CURLUPART_URL, $0, flags) }
        guard code == CURLUE_OK else {
            throw invalid("cannot be parsed: \(String(cString: curl_url_strerror(code)))")
        }
    }
}
