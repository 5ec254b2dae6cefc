import CShims

/// A `ws` or `wss` URL (RFC 6455 §3), or an `http` or `https` one (RFC 9110 §4.2), taken apart by
/// libcurl's URL parser so that the connection is made to the very host that was checked here.
package struct HTTPURL: Equatable, Sendable {
    /// What a URL is for, which says how its schemes are called.
    package enum Kind: Sendable {
        case webSocket
        case http

        /// Without TLS, and with it.
        fileprivate var schemes: (plain: String, secure: String) {
            switch self {
            case .webSocket: ("ws", "wss")
            case .http: ("http", "https")
            }
        }
    }

    /// The longest URL accepted, in bytes.
    package static let lengthLimit = 65_536

    /// Shared by all URLs that were made of one another.
    private let place: Place
    /// Path and query as they go into the request: percent-encoded, at least "/".
    package private(set) var target: String
    private var login: Login?

    package var kind: Kind { place.kind }
    package var isSecure: Bool { place.isSecure }
    /// A name, an IPv4 address, or an IPv6 address without brackets and zone.
    package var host: String { place.host }
    package var port: UInt16 { place.port }
    /// Percent-decoded.
    package var user: String? { login?.user }
    /// Percent-decoded.
    package var password: String? { login?.password }

    /// For the Host header: the port is left out when it is the scheme's own (RFC 6455 §4.1).
    package var hostHeader: String { place.hostHeader }

    /// What libcurl connects to: scheme, host and port alone.
    package var connectURL: String { place.connectURL }

    /// The value of an Authorization header for its user and password (RFC 7617 §2); nil without.
    package var basicAuthorization: String? {
        guard let login else { return nil }
        // A user with a colon was refused.
        return try? HeaderField.basicAuthorization(
            user: login.user ?? "", password: login.password ?? "")
    }

    /// Scheme, host and, unless it is the scheme's own, port (RFC 6454 §6.2).
    package var origin: String { place.origin }

    /// The whole URL without user and password.
    package var text: String { origin + target }

    /// The whole URL without user and password, with the zone: to be parsed again.
    package var requestURL: String { connectURL + target }

    /// Host and port, for messages.
    package var displayName: String { place.displayName }

    /// - Throws: `.unsupportedScheme`, or `.invalidURL` with what to change; the message shows the
    ///   URL without its user, password and query.
    package init(parsing text: String, as kind: Kind) throws(RealtimeError) {
        let isSecure = try checkText(text, kind)
        let parts = URLParts(text.withoutFragment, shown: text)
        try parts.parse()
        guard var host = try parts.string(CURLUPART_HOST), !host.isEmpty else {
            throw invalid(text, "has no host")
        }
        if host.hasPrefix("[") {
            host = String(host.dropFirst().dropLast())
        } else if !host.hasBytes(only: isUnreserved) {
            // Percent-encoded bytes are decoded by now, so this sees what would be looked up.
            throw invalid(
                text,
                "has a host with characters that no host name has; write an "
                    + "international name in its xn-- form")
        }
        place = Place(
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
        // Neither path nor query may hold all bytes as they are (RFC 3986 §3.3, §3.4); "%" stays,
        // since what is encoded already is left alone.
        target = percentEncoded(
            (try parts.string(CURLUPART_PATH) ?? "/") + (query.map { "?" + $0 } ?? "")
        ) { isPlain($0) || $0 == UInt8(ascii: "%") }
    }

    /// RFC 6454 §4.
    package func hasSameOrigin(as other: HTTPURL) -> Bool {
        if place === other.place { return true }
        return isSecure == other.isSecure && port == other.port && place.zone == other.place.zone
            && host.equalsIgnoringASCIICase(other.host)
    }

    /// With another path and query, which begin with a slash; nil when they are not made of what
    /// goes into a request as it is alone, and so have to be parsed.
    package func withPlainTarget(_ target: String) -> HTTPURL? {
        // A segment that begins with a dot may be one that leads up (RFC 3986 §5.2.4).
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

    /// The URL that `text` is, if it has this one's origin, spelt alike, and a plain target; nil
    /// when it has to be parsed.
    package func sibling(_ text: String) -> HTTPURL? {
        guard place.zone == nil, text.beginsWithBytes(of: origin) else { return nil }
        let target = text.utf8.dropFirst(origin.utf8.count)
        guard target.first == UInt8(ascii: "/") else { return nil }
        return withPlainTarget(String(Substring(target)))?.withCredentials(of: nil)
    }

    /// With another URL's user and password, or none.
    package func withCredentials(of other: HTTPURL?) -> HTTPURL {
        var copy = self
        copy.login = other?.login
        return copy
    }

    /// With the query parameter `name` set to `value`, in the place of all of that name, however
    /// they are encoded.
    package func withQuery(_ name: String, _ value: String) -> HTTPURL {
        let mark = target.firstIndex(of: "?")
        var pairs = mark.map { target[target.index(after: $0)...].split(separator: "&") } ?? []
        pairs.removeAll { formDecoded($0.prefix { $0 != "=" }).elementsEqual(name.utf8) }
        pairs.append("\(formEncoded(name))=\(formEncoded(value))")
        var copy = self
        copy.target = target[..<(mark ?? target.endIndex)] + "?" + pairs.joined(separator: "&")
        return copy
    }

    /// The place a Location header means, seen from here (RFC 3986 §5); for a WebSocket `http` and
    /// `https` stand for `ws` and `wss`. A fragment is left out, since it is the user's alone.
    ///
    /// Bytes that no URL has, such as spaces and bytes above 0x7F, are percent-encoded one by one,
    /// as browsers and curl do; tabs are left out, and a backslash before the query is a slash
    /// (WHATWG URL §4.4). Whatever encoding a server's paths have, it gets the same bytes back.
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
        // It is for another program, and may hold a code that is for that alone.
        if let colon = whole.utf8.firstIndex(of: UInt8(ascii: ":")), isScheme(whole.utf8[..<colon]),
            !whole.utf8[colon...].starts(with: "://".utf8)
        {
            throw RealtimeError(
                .invalidURL,
                "a URL of the scheme \(whole[..<colon].quoted(upTo: 30)) without a host is not"
                    + " followed")
        }
        let url = "\(place.scheme)://\(displayName)\(target)"
        let base = URLParts(url, shown: url)
        try base.parse()
        // The whole of it: a password may reach past "#".
        let shown = FieldText(bytes: location).text
        guard var text = try base.resolved(whole, shown: shown) else {
            throw invalid(shown, "leads nowhere")
        }
        if kind == .webSocket, text.prefix(4).equalsIgnoringASCIICase("http") {
            text = "ws" + text.dropFirst(4)
        }
        return try HTTPURL(parsing: text, as: kind)
    }
}

/// What a URL leads to: with the texts that follow from it, each made once.
private final class Place: Sendable, Equatable {
    let kind: HTTPURL.Kind
    let isSecure: Bool
    let host: String
    let port: UInt16
    /// The zone of a link-local IPv6 address (RFC 6874), which matters to this machine alone.
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

    static func == (a: Place, b: Place) -> Bool {
        a === b
            || a.kind == b.kind && a.isSecure == b.isSecure && a.host == b.host
                && a.port == b.port && a.zone == b.zone
    }
}

/// The user and password of a URL, of which one may be missing.
private final class Login: Sendable, Equatable {
    let user: String?
    let password: String?

    /// nil for neither.
    convenience init?(user: String?, password: String?) {
        guard user != nil || password != nil else { return nil }
        self.init(user, password)
    }

    private init(_ user: String?, _ password: String?) {
        self.user = user
        self.password = password
    }

    static func == (a: Login, b: Login) -> Bool {
        a.user == b.user && a.password == b.password
    }
}

extension String {
    /// What is behind "#" is never sent (RFC 9110 §4.2.5).
    package var withoutFragment: String { upTo(UInt8(ascii: "#")) }

    /// Of a URL or a path: what the log may have.
    package var withoutQuery: String { upTo(UInt8(ascii: "?")) }
}

private func invalid(_ text: String, _ fault: String) -> RealtimeError {
    RealtimeError(.invalidURL, "The URL \(HTTPURL.redacted(text)) \(fault)")
}

/// What libcurl's parser lets pass and RFC 6455 §3 or RFC 3986 does not. Whether it is by TLS.
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
    // libcurl skips a third slash; by RFC 3986 it means that the host is empty.
    let authority = bytes[bytes.index(colon, offsetBy: 3)...]
    guard let first = authority.first, !"/?#".utf8.contains(first) else {
        throw invalid(text, "has no host")
    }
    // By RFC 3986 what follows is a fragment; nobody means one that contains the host.
    if let mark = authority.firstIndex(where: { "/?#".utf8.contains($0) }),
        authority[mark] == UInt8(ascii: "#"), authority[mark...].contains(UInt8(ascii: "@"))
    {
        throw invalid(text, "has a # in front of its host; write # in a password as %23")
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

/// RFC 3986 §3.1.
func isScheme(_ bytes: Substring.UTF8View) -> Bool {
    guard let first = bytes.first, (0x61...0x7A).contains(first.asciiLowercased) else {
        return false
    }
    return bytes.allSatisfy { isAlphanumeric($0) || "+-.".utf8.contains($0) }
}

private func isAlphanumeric(_ byte: UInt8) -> Bool {
    byte.isASCIIDigit || (0x61...0x7A).contains(byte.asciiLowercased)
}

/// RFC 3986 §2.3.
func isUnreserved(_ byte: UInt8) -> Bool {
    isAlphanumeric(byte) || "-._~".utf8.contains(byte)
}

/// What path and query hold as it is; what a percent-encoding stands for is not looked at.
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

/// As a form's name or value (application/x-www-form-urlencoded), a space as %20: understood by
/// every server, in a query and in a body.
package func formEncoded(_ text: String) -> String { percentEncoded(text, keeping: isUnreserved) }

/// What a form's name stands for; a percent sign without two digits stands for itself.
private func formDecoded(_ text: Substring) -> [UInt8] {
    var result: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
        let digits = rest.prefix(2).compactMap { $0.hexDigitValue }
        if byte == UInt8(ascii: "%"), digits.count == 2 {
            rest = rest.dropFirst(2)
            result.append(digits[0] << 4 | digits[1])
        } else {
            result.append(byte == UInt8(ascii: "+") ? 0x20 : byte)
        }
    }
    return result
}

private func percentEncoded(_ text: String, keeping isKept: (UInt8) -> Bool) -> String {
    text.hasBytes(only: isKept) ? text : percentEncoded(text.utf8, keeping: isKept)
}

private func percentEncoded(
    _ bytes: some Collection<UInt8>, keeping isKept: (UInt8) -> Bool
) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var result: [UInt8] = []
    for byte in bytes {
        if isKept(byte) {
            result.append(byte)
        } else {
            result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }
    return String(decoding: result, as: UTF8.self)
}

/// A URL in libcurl's hands.
private struct URLParts: ~Copyable {
    /// nil, which libcurl answers with an error, when there was no memory for it.
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

    /// The part as text, or nil when the URL has none.
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

    /// The absolute URL that a reference means, seen from this one.
    /// - Parameter shown: the reference as messages show it.
    func resolved(_ reference: String, shown: String) throws(RealtimeError) -> String? {
        let flags = UInt32(CURLU_NON_SUPPORT_SCHEME)
        let code = reference.withCString { curl_url_set(handle, CURLUPART_URL, $0, flags) }
        guard code == CURLUE_OK else {
            throw invalid(shown, "cannot be parsed: \(String(cString: curl_url_strerror(code)))")
        }
        do throws(RealtimeError) {
            return try string(CURLUPART_URL)
        } catch {
            // The parser decodes the host alone.
            throw invalid(shown, "has a host that is not UTF-8")
        }
    }

    private func failure(_ code: CURLUcode) -> RealtimeError {
        invalid(shown, "cannot be parsed: \(String(cString: curl_url_strerror(code)))")
    }
}
