/// The cookies of one host (RFC 6265), for servers that know a client by them: a load balancer
/// chooses one of several servers and lets the client name it again. They are kept in memory only.
///
/// No cookie is sent to another host, so those for a whole domain are kept for this host.
package struct CookieJar: Sendable {
    private struct Cookie {
        let name: String
        let value: String
        let path: String
        let isSecure: Bool
        /// Milliseconds since 1970; nil for a cookie that stays.
        let expires: Int64?
    }

    private let host: String
    /// In the order in which they were created.
    private var cookies: [Cookie] = []
    private static let countLimit = 50
    private static let byteLimit = 4096

    package init(host: String) { self.host = host }

    /// Keeps what a response sets. What the server must not set, or what is too long, is ignored.
    /// - Parameters:
    ///   - fields: the values of the response's `Set-Cookie` fields.
    ///   - wallClock: milliseconds since 1970.
    package mutating func take(_ fields: [String], from url: HTTPURL, wallClock: Int64) {
        guard url.host.equalsIgnoringASCIICase(host) else { return }
        for field in fields {
            guard let cookie = CookieJar.parse(field, url, wallClock) else { continue }
            let old = cookies.firstIndex {
                $0.name.hasSameBytes(as: cookie.name) && $0.path.hasSameBytes(as: cookie.path)
            }
            let isOver = cookie.expires.map { $0 <= wallClock } ?? false
            switch (old, isOver) {
            case (let old?, true): cookies.remove(at: old)
            case (let old?, false): cookies[old] = cookie
            case (nil, true): break
            case (nil, false):
                cookies.append(cookie)
                if cookies.count > CookieJar.countLimit { cookies.removeFirst() }
            }
        }
    }

    /// The header fields of a request: these, and the cookies for its URL, which follow those of a
    /// `Cookie` field.
    package func fields(
        with given: [HeaderField], for url: HTTPURL, wallClock: Int64
    ) -> [HeaderField] {
        guard url.host.equalsIgnoringASCIICase(host) else { return given }
        let path = url.target.withoutQuery
        let found = cookies.filter { cookie in
            (cookie.expires.map { $0 > wallClock } ?? true) && (url.isSecure || !cookie.isSecure)
                && CookieJar.matches(path, cookie.path)
        }
        guard !found.isEmpty else { return given }
        // RFC 6265 §5.4: longer paths first, then those that were created first.
        let order = found.indices.sorted { first, second in
            let (one, other) = (found[first].path.utf8.count, found[second].path.utf8.count)
            return one == other ? first < second : one > other
        }
        var text = order.map { "\(found[$0].name)=\(found[$0].value)" }.joined(separator: "; ")
        var fields = given
        if let own = fields.firstIndex(where: { $0.name.equalsIgnoringASCIICase("Cookie") }) {
            text = fields.remove(at: own).value + "; " + text
        }
        fields.append(HeaderField(name: "Cookie", value: text))
        return fields
    }

    // MARK: RFC 6265 §5.2, §5.3

    private static func parse(_ field: String, _ url: HTTPURL, _ wallClock: Int64) -> Cookie? {
        let parts = field.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        guard let first = parts.first, let equals = first.firstIndex(of: UInt8(ascii: "=")) else {
            return nil
        }
        let name = text(first[..<equals])
        let value = text(first[first.index(after: equals)...])
        guard !name.isEmpty, name.utf8.count + value.utf8.count <= byteLimit,
            isPrintable(name), isPrintable(value)
        else { return nil }
        var path = directory(of: url.target.withoutQuery)
        var isSecure = false
        var maxAge: Int64?
        var date: Int64?
        for part in parts.dropFirst() {
            let equals = part.firstIndex(of: UInt8(ascii: "="))
            let name = text(part[..<(equals ?? part.endIndex)])
            let value = equals.map { text(part[part.index(after: $0)...]) } ?? ""
            if name.equalsIgnoringASCIICase("Path") {
                guard value.utf8.count <= byteLimit else { return nil }
                let isPath = value.utf8.first == UInt8(ascii: "/")
                path = isPath ? value : directory(of: url.target.withoutQuery)
            } else if name.equalsIgnoringASCIICase("Domain") {
                guard isDomain(value, of: url.host) else { return nil }
            } else if name.equalsIgnoringASCIICase("Secure") {
                guard url.isSecure else { return nil }
                isSecure = true
            } else if name.equalsIgnoringASCIICase("Max-Age") {
                if let seconds = Int64(value) { maxAge = seconds }
            } else if name.equalsIgnoringASCIICase("Expires") {
                if let seconds = parseHTTPDate(value, now: wallClock / 1000) { date = seconds }
            }
        }
        // A century is as good as any longer time.
        let age = maxAge.map { wallClock + max(0, min($0, 3_155_760_000)) * 1000 }
        let expires = age ?? date.map { $0 &* 1000 }
        return Cookie(name: name, value: value, path: path, isSecure: isSecure, expires: expires)
    }

    private static func text(_ part: Substring.UTF8View) -> String {
        String(decoding: part.trimmingBlanks, as: UTF8.self)
    }

    private static func isPrintable(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
    }

    /// The path of what a URL's path is in.
    private static func directory(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > path.utf8.startIndex
        else { return "/" }
        return String(Substring(path.utf8[..<slash]))
    }

    private static func matches(_ path: String, _ prefix: String) -> Bool {
        guard path.utf8.starts(with: prefix.utf8) else { return false }
        let rest = path.utf8.dropFirst(prefix.utf8.count)
        return rest.isEmpty || prefix.utf8.last == UInt8(ascii: "/")
            || rest.first == UInt8(ascii: "/")
    }

    /// Whether a cookie of this domain is one for the host. Empty means the host.
    private static func isDomain(_ domain: String, of host: String) -> Bool {
        var name = domain.utf8[...]
        if name.first == UInt8(ascii: ".") { name = name.dropFirst() }
        if name.isEmpty || host.equalsIgnoringASCIICase(Substring(name)) { return true }
        let end = host.utf8.suffix(name.count + 1)
        return end.first == UInt8(ascii: ".")
            && String(Substring(end.dropFirst())).equalsIgnoringASCIICase(Substring(name))
    }
}
