import CShims

/// A `ws` or `wss` URL (RFC 6455 §3), or an `http` or `https` URL (RFC 9110 §4.2). libcurl's URL
/// parser splits it, so the connection is made to the same host that was checked here.
package struct HTTPURL: Equatable, Sendable {
    /// The use of a URL, which determines its schemes.
    package enum Kind: Sendable {
        case webSocket
        case http

        /// The schemes without and with TLS.
        var schemes: (plain: String, secure: String) {
            switch self {
            case .webSocket: ("ws", "wss")
            case .http: ("http", "https")
            }
        }
    }

    /// The longest URL accepted, in bytes.
    package static let lengthLimit = 65_536

    /// Shared by all URLs that were derived from one another.
    private let server: Server
    /// Path and query as sent in the request: percent-encoded, at least "/".
    package private(set) var target: String
    private var login: Login?

    package var kind: Kind { server.kind }
    package var isSecure: Bool { server.isSecure }
    /// A name, an IPv4 address, or an IPv6 address without brackets and zone.
    package var host: String { server.host }
    package var port: UInt16 { server.port }
    /// The zone of a link-local IPv6 address (RFC 6874); nil for none.
    package var zone: String? { server.zone }
    /// Percent-decoded.
    package var user: String? { login?.user }
    /// Percent-decoded.
    package var password: String? { login?.password }

    /// The value of the Host header. The scheme's default port is left out (RFC 6455 §4.1).
    package var hostHeader: String { server.hostHeader }

    /// The URL to which libcurl connects: only scheme, host and port.
    package var connectURL: String { server.connectURL }

    /// The value of an Authorization header for the URL's user and password (RFC 7617 §2), if any.
    package var basicAuthorization: String? {
        guard let login else { return nil }
        // The parser has rejected user names with a colon.
        return try? HeaderField.basicAuthorization(
            user: login.user ?? "", password: login.password ?? "")
    }

    /// Scheme, host, and port unless it is the scheme's default (RFC 6454 §6.2).
    package var origin: String { server.origin }

    /// The whole URL without user and password.
    package var text: String { origin + target }

    /// The whole URL with the zone, but without user and password. It can be parsed again.
    package var requestURL: String { connectURL + target }

    /// Host and port, for messages.
    package var displayName: String { server.displayName }

    /// - Throws: `.unsupportedScheme`, or `.invalidURL` with advice what to change. The message
    ///   shows the URL without user, password and query.
    package init(parsing text: String, as kind: Kind) throws(RealtimeError) {
        let isSecure = try checkText(text, kind)
        let parts = URLParts(text.withoutFragment, shown: text)
        try parts.parse()
        guard var host = try parts.string(CURLUPART_HOST), !host.isEmpty else {
            throw invalid(text, "has no host")
        }
        if host.hasPrefix("[") {
            host = String(host.dropFirst().dropLast())
        } else {
            // libcurl has percent-decoded the host, so this checks the name that is looked up.
            do throws(HostName.Fault) {
                host = try HostName.ascii(host)
            } catch {
                throw invalid(text, error.text)
            }
        }
        server = Server(
            kind, isSecure, host: host,
            port: try parsePort(parts.string(CURLUPART_PORT), of: text) ?? (isSecure ? 443 : 80),
            zone: try parts.string(CURLUPART_ZONEID))
        login = try Login(
            user: parts.string(CURLUPART_USER, decoded: true),
            password: parts.string(CURLUPART_PASSWORD, decoded: true))
        if let user = login?.user, user.contains(":") {
            throw invalid(text, "has a user name with a colon, which RFC 7617 §2 forbids")
        }
        let query = try parts.string(CURLUPART_QUERY)
        // Path and query must not contain some bytes (RFC 3986 §3.3, §3.4). "%" is kept, because
        // percent-encoded bytes must not be encoded again.
        target = percentEncoded(
            (try parts.string(CURLUPART_PATH) ?? "/") + (query.map { "?" + $0 } ?? "")
        ) { isPlain($0) || $0 == UInt8(ascii: "%") }
    }

    /// The URL of an object that cannot be used: no server has it (RFC 6761 §6.4).
    package static let unusable = HTTPURL(
        server: Server(.http, false, host: "invalid", port: 80, zone: nil), target: "/")

    private init(server: Server, target: String) {
        self.server = server
        self.target = target
    }

    /// Whether scheme, host and port are the same (RFC 6454 §4).
    package func hasSameOrigin(as other: HTTPURL) -> Bool {
        if server === other.server { return true }
        return isSecure == other.isSecure && port == other.port
            && server.zone.hasSameBytes(as: other.server.zone)
            && host.equalsIgnoringASCIICase(other.host)
    }

    /// Whether this is the same server by TLS, where `other` is without: on the usual ports, or on
    /// the same one.
    package func isSecured(_ other: HTTPURL) -> Bool {
        isSecure && !other.isSecure && (port == other.port || port == 443 && other.port == 80)
            && server.zone.hasSameBytes(as: other.server.zone)
            && host.equalsIgnoringASCIICase(other.host)
    }

    /// This URL with another path and query, which must begin with a slash. nil if they contain
    /// bytes that need encoding or dot segments, and so must be parsed.
    package func withPlainTarget(_ target: String) -> HTTPURL? {
        // A segment that begins with a dot may lead up (RFC 3986 §5.2.4).
        var last: UInt8 = 0
        let isWhole = target.hasBytes { byte in
            defer { last = byte }
            return isPlain(byte) && (byte != UInt8(ascii: ".") || last != UInt8(ascii: "/"))
        }
        guard isWhole else { return nil }
        guard target.utf8.count + connectURL.utf8.count <= HTTPURL.lengthLimit else { return nil }
        var copy = self
        copy.target = target
        return copy
    }

    /// `text` as a URL, if it has this URL's origin, written the same way, and a plain target; nil
    /// if it must be parsed.
    package func sibling(_ text: String) -> HTTPURL? {
        guard server.zone == nil, text.beginsWithBytes(of: origin) else { return nil }
        let target = text.utf8.dropFirst(origin.utf8.count)
        guard target.first == UInt8(ascii: "/") else { return nil }
        return withPlainTarget(String(Substring(target)))?.withCredentials(of: nil)
    }

    /// This URL with another URL's user and password, or with none.
    package func withCredentials(of other: HTTPURL?) -> HTTPURL {
        var copy = self
        copy.login = other?.login
        return copy
    }

    /// This URL with the query parameter `name` set to `value`. It replaces all parameters of that
    /// name, however they are encoded.
    package func withQuery(_ name: String, _ value: String) -> HTTPURL {
        let mark = target.firstIndex(of: "?")
        var pairs = mark.map { target[target.index(after: $0)...].split(separator: "&") } ?? []
        pairs.removeAll { formDecoded($0.prefix { $0 != "=" }).elementsEqual(name.utf8) }
        pairs.append("\(formEncoded(name))=\(formEncoded(value))")
        var copy = self
        copy.target = target[..<(mark ?? target.endIndex)] + "?" + pairs.joined(separator: "&")
        return copy
    }

    /// The URL of a Location header, resolved against this one (RFC 3986 §5). For a WebSocket,
    /// `http` and `https` stand for `ws` and `wss`. The fragment is dropped, because only the user
    /// may set it.
    ///
    /// Bytes that no URL contains, such as spaces and bytes above 0x7F, are percent-encoded one by
    /// one, as browsers and curl do. Tabs are dropped, and a backslash before the query becomes a
    /// slash (WHATWG URL §4.4). So the server gets the same bytes back, whatever encoding its paths
    /// have.
    package func resolving(redirect location: [UInt8]) throws(RealtimeError) -> HTTPURL {
        let reference = location.prefix { $0 != UInt8(ascii: "#") }
        var bytes = reference.trimmingBlanks.filter { $0 != 0x09 }
        for index in bytes.indices.prefix(while: { bytes[$0] != UInt8(ascii: "?") })
        where bytes[index] == UInt8(ascii: "\\") {
            bytes[index] = UInt8(ascii: "/")
        }
        let whole = percentEncoded(bytes) {
            (0x21...0x7E).contains($0)
        }
        // Such a URL is for another program. It may contain a code, which must not be shown.
        if let colon = whole.utf8.firstIndex(of: UInt8(ascii: ":")), isScheme(whole.utf8[..<colon]),
            !whole.utf8[colon...].starts(with: "://".utf8)
        {
            throw RealtimeError(
                .invalidURL,
                "a URL of the scheme \(whole[..<colon].quoted(upTo: 30)) without a host is not"
                    + " followed")
        }
        let url = "\(server.scheme)://\(displayName)\(target)"
        let base = URLParts(url, shown: url)
        try base.parse()
        // Show the whole text: a password may continue after "#".
        let shown = FieldText(bytes: location).text
        guard var text = try base.resolved(whole, shown: shown) else {
            throw invalid(shown, "cannot be resolved")
        }
        if kind == .webSocket, text.prefix(4).equalsIgnoringASCIICase("http") {
            text = "ws" + text.dropFirst(4)
        }
        return try HTTPURL(parsing: text, as: kind)
    }
}

/// The server of a URL, with the texts derived from it, each made once.
private final class Server: Sendable, Equatable {
    let kind: HTTPURL.Kind
    let isSecure: Bool
    let host: String
    let port: UInt16
    /// The zone of a link-local IPv6 address (RFC 6874). It has a meaning only on this machine.
    let zone: String?
    let hostHeader: String
    let displayName: String
    let connectURL: String
    let origin: String

    var scheme: String { isSecure ? kind.schemes.secure : kind.schemes.plain }

    init(_ kind: HTTPURL.Kind, _ isSecure: Bool, host: String, port: UInt16, zone: String?) {
        self.kind = kind
        self.isSecure = isSecure
        self.host = host
        self.port = port
        self.zone = zone
        let isAddress = host.contains(":")
        let name = isAddress ? "[\(host)]" : host
        hostHeader = port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
        displayName =
            isAddress ? "[\(host)\(zone.map { "%25" + $0 } ?? "")]:\(port)" : "\(host):\(port)"
        connectURL = "\(isSecure ? "https" : "http")://\(displayName)"
        origin = "\(isSecure ? kind.schemes.secure : kind.schemes.plain)://\(hostHeader)"
    }

    static func == (a: Server, b: Server) -> Bool {
        a === b
            || a.kind == b.kind && a.isSecure == b.isSecure && a.host.hasSameBytes(as: b.host)
                && a.port == b.port && a.zone.hasSameBytes(as: b.zone)
    }
}

/// The user and password of a URL. One of them may be missing.
private final class Login: Sendable, Equatable {
    let user: String?
    let password: String?

    /// nil if there is neither.
    convenience init?(user: String?, password: String?) {
        guard user != nil || password != nil else { return nil }
        self.init(user, password)
    }

    private init(_ user: String?, _ password: String?) {
        self.user = user
        self.password = password
    }

    static func == (a: Login, b: Login) -> Bool {
        a.user.hasSameBytes(as: b.user) && a.password.hasSameBytes(as: b.password)
    }
}

extension String {
    /// The text before "#". A fragment is never sent (RFC 9110 §4.2.5).
    package var withoutFragment: String { upTo(UInt8(ascii: "#")) }

    /// The part of a URL or path that may be logged.
    package var withoutQuery: String { upTo(UInt8(ascii: "?")) }
}

private func invalid(_ text: String, _ fault: String) -> RealtimeError {
    RealtimeError(.invalidURL, "The URL \(HTTPURL.redacted(text)) \(fault)")
}

/// Rejects text that libcurl's parser accepts, but RFC 6455 §3 or RFC 3986 does not. Returns
/// whether the scheme has TLS.
private func checkText(_ text: String, _ kind: HTTPURL.Kind) throws(RealtimeError) -> Bool {
    let (plain, secure) = kind.schemes
    let bytes = text.utf8
    guard bytes.count <= HTTPURL.lengthLimit else {
        throw invalid(text, "has more than \(HTTPURL.lengthLimit) bytes")
    }
    guard !bytes.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
        throw invalid(text, "has a space or control character; write it percent-encoded")
    }
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), isScheme(bytes[..<colon]),
        bytes[colon...].starts(with: "://".utf8)
    else {
        throw invalid(text, "does not begin with \(plain):// or \(secure)://")
    }
    let scheme = text[..<colon]
    let isSecure = scheme.equalsIgnoringASCIICase(secure)
    guard isSecure || scheme.equalsIgnoringASCIICase(plain) else {
        throw RealtimeError(
            .unsupportedScheme,
            "The URL \(HTTPURL.redacted(text)) has the scheme \(scheme.quoted(upTo: 30)); "
                + "\(plain) or \(secure) is expected")
    }
    // libcurl skips a third slash. By RFC 3986 it means that the host is empty.
    let authority = bytes[bytes.index(colon, offsetBy: 3)...]
    guard let first = authority.first, !"/?#".utf8.contains(first) else {
        throw invalid(text, "has no host")
    }
    // By RFC 3986 a fragment follows, but it is not meant to contain the host.
    if let mark = authority.firstIndex(where: { "/?#".utf8.contains($0) }),
        authority[mark] == UInt8(ascii: "#"), authority[mark...].contains(UInt8(ascii: "@"))
    {
        throw invalid(text, "has a # before its host; write # in a password as %23")
    }
    guard kind == .http || !bytes.contains(UInt8(ascii: "#")) else {
        throw invalid(text, "has a fragment, which RFC 6455 §3 forbids; write # as %23")
    }
    return isSecure
}

private func parsePort(_ digits: String?, of text: String) throws(RealtimeError) -> UInt16? {
    guard let digits else { return nil }
    guard let port = UInt16(digits), port > 0 else {
        throw invalid(text, "has a port that is not in 1 to 65535")
    }
    return port
}

/// Whether the bytes are a valid scheme (RFC 3986 §3.1).
func isScheme(_ bytes: Substring.UTF8View) -> Bool {
    guard let first = bytes.first, (0x61...0x7A).contains(first.asciiLowercased) else {
        return false
    }
    return bytes.allSatisfy { isAlphanumeric($0) || "+-.".utf8.contains($0) }
}

func isAlphanumeric(_ byte: UInt8) -> Bool {
    byte.isASCIIDigit || (0x61...0x7A).contains(byte.asciiLowercased)
}

/// Whether path and query may contain the byte unencoded. Not "%", because encoded bytes are not
/// checked.
private func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "@")...UInt8(ascii: "Z"),
        // &'()*+,-./0123456789:;
        UInt8(ascii: "&")...UInt8(ascii: ";"), UInt8(ascii: "!"), UInt8(ascii: "$"),
        UInt8(ascii: "="), UInt8(ascii: "?"), UInt8(ascii: "_"), UInt8(ascii: "~"):
        true
    default: false
    }
}

/// A URL parsed by libcurl.
private struct URLParts: ~Copyable {
    /// nil if memory is short; libcurl's functions then return an error.
    private let handle: OpaquePointer?
    private let text: String
    /// The whole URL, for messages.
    private let shown: String

    init(_ text: String, shown: String) {
        handle = curl_url()
        self.text = text
        self.shown = shown
    }

    deinit { curl_url_cleanup(handle) }

    func parse() throws(RealtimeError) {
        let flags = UInt32(CURLU_NON_SUPPORT_SCHEME)
        let code = text.withCString { curl_url_set(handle, CURLUPART_URL, $0, flags) }
        if code != CURLUE_OK { throw failure(code) }
    }

    /// The part as text; nil if the URL does not have it.
    func string(_ part: CURLUPart, decoded: Bool = false) throws(RealtimeError) -> String? {
        var value: UnsafeMutablePointer<CChar>?
        let code = curl_url_get(handle, part, &value, decoded ? UInt32(CURLU_URLDECODE) : 0)
        defer { curl_free(value) }
        switch code {
        case CURLUE_OK:
            guard let value else { return nil }
            guard let string = String(validatingCString: value) else {
                throw invalid(shown, "has percent-encoded bytes that are not UTF-8")
            }
            return string
        case CURLUE_NO_USER, CURLUE_NO_PASSWORD, CURLUE_NO_HOST, CURLUE_NO_PORT, CURLUE_NO_QUERY,
            CURLUE_NO_ZONEID:
            return nil
        default:
            throw failure(code)
        }
    }

    /// The absolute URL of a reference, resolved against this one.
    /// - Parameter shown: the reference as shown in messages.
    func resolved(_ reference: String, shown: String) throws(RealtimeError) -> String? {
        let flags = UInt32(CURLU_NON_SUPPORT_SCHEME)
        let code = reference.withCString { curl_url_set(handle, CURLUPART_URL, $0, flags) }
        guard code == CURLUE_OK else {
            throw invalid(shown, "cannot be parsed: \(String(cString: curl_url_strerror(code)))")
        }
        do throws(RealtimeError) {
            return try string(CURLUPART_URL)
        } catch {
            // The parser decodes only the host.
            throw invalid(shown, "has a host that is not UTF-8")
        }
    }

    private func failure(_ code: CURLUcode) -> RealtimeError {
        invalid(shown, "cannot be parsed: \(String(cString: curl_url_strerror(code)))")
    }
}
