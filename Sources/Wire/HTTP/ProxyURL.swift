import CShims

/// Checks and splits a proxy's URL, in the form that libcurl takes.
package enum ProxyURL {
    package static let schemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]

    /// - Throws: `.unsupportedScheme`, or `.invalidURL`. The message shows neither user nor
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
        // libcurl would try port 0, and ignore a path, a query and a fragment.
        guard part(handle, CURLUPART_PATH) ?? "/" == "/",
            part(handle, CURLUPART_QUERY) == nil, part(handle, CURLUPART_FRAGMENT) == nil
        else { throw invalid("has a path, query or fragment, which a proxy must not have") }
        guard part(handle, CURLUPART_PORT).map({ UInt16($0) ?? 0 }) != 0 else {
            throw invalid("has a port that is not in 1 to 65535")
        }
    }

    /// Host and port of the proxy, an international host in its xn-- form. Proxies in environment
    /// variables may lack a scheme.
    /// - Parameter text: the text that libcurl gets.
    package static func address(of text: String) -> (host: String, port: Int) {
        var rest = Substring(text)
        var isSecure = false
        if let mark = rest.firstIndex(of: ":"), rest[mark...].hasPrefix("://") {
            isSecure = rest[..<mark].equalsIgnoringASCIICase("https")
            rest = rest[rest.index(mark, offsetBy: 3)...]
        }
        rest = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        if let at = rest.lastIndex(of: "@") { rest = rest[rest.index(after: at)...] }
        let host: String
        if rest.hasPrefix("[") {
            host = String(rest.dropFirst().prefix { $0 != "]" && $0 != "%" })
            rest = rest.drop { $0 != "]" }.dropFirst()
        } else {
            let name = String(rest.prefix { $0 != ":" })
            rest = rest.dropFirst(name.count)
            host = (try? HostName.ascii(name)) ?? name
        }
        // libcurl's defaults (CURLOPT_PROXY).
        let usual = isSecure ? 443 : 1080
        return (host, rest.hasPrefix(":") ? Int(rest.dropFirst()) ?? usual : usual)
    }

    /// The zone of a proxy's link-local IPv6 address (RFC 6874); nil for none.
    package static func zone(of text: String) -> String? {
        guard let end = text.lastIndex(of: "]"), let mark = text[..<end].lastIndex(of: "%")
        else { return nil }
        let zone = text[text.index(after: mark)..<end]
        return String(zone.hasPrefix("25") ? zone.dropFirst(2) : zone)
    }

    /// Host and port, for messages.
    package static func displayName(of text: String) -> String {
        let (host, port) = address(of: text)
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    private static func part(_ handle: OpaquePointer?, _ part: CURLUPart) -> String? {
        var value: UnsafeMutablePointer<CChar>?
        defer { curl_free(value) }
        guard curl_url_get(handle, part, &value, 0) == CURLUE_OK else { return nil }
        return value.map { String(cString: $0) }
    }
}
