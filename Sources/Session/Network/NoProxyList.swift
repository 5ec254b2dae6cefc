package import Wire

/// The hosts to which no proxy is used: names, domains, addresses and networks (NO_PROXY). A name,
/// a domain or an address may have a port, and then only that port of it is meant.
package struct NoProxyList: Sendable, Equatable {
    private enum Entry: Sendable, Equatable {
        case all
        /// The name itself, and every name that ends in "." followed by it.
        case domain(String)
        case network(IPAddress, bits: Int)
    }

    private struct Line: Sendable, Equatable {
        var entry: Entry
        /// nil for all.
        var port: UInt16?
    }

    private let lines: [Line]

    /// - Throws: `.invalidArgument`, naming the first entry that cannot match any host.
    package init(parsing text: String) throws(RealtimeError) {
        guard !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw RealtimeError(.invalidArgument, "the no-proxy list has a control character")
        }
        var lines: [Line] = []
        for word in words(text) { lines.append(try NoProxyList.line(word)) }
        self.lines = lines
    }

    /// From the environment. Entries that cannot match are ignored.
    package init(ofEnvironment text: String) {
        lines = words(text).compactMap { word in try? NoProxyList.line(word) }
    }

    /// - Parameter host: a name, or an address without brackets.
    package func contains(_ host: String, port: UInt16) -> Bool {
        let address = IPAddress(host)
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        return lines.contains { line in
            guard line.port == nil || line.port == port else { return false }
            return switch line.entry {
            case .all: true
            case .domain(let domain): address == nil && isName(name, in: domain)
            case .network(let network, let bits):
                address?.begins(with: network, length: bits) ?? false
            }
        }
    }

    private static func line(_ word: Substring) throws(RealtimeError) -> Line {
        // An IPv6 address has brackets if a port follows.
        if let colon = word.lastIndex(of: ":"), IPAddress(String(word)) == nil,
            !word.hasSuffix("]"), !word.contains("/"), !word.contains("@")
        {
            let digits = word[word.index(after: colon)...]
            let isNumber = digits.utf8.allSatisfy { $0.isASCIIDigit }
            guard isNumber, let port = UInt16(digits), port > 0 else {
                throw invalid(word, "whose port is not in 1 to 65535")
            }
            return Line(entry: try entry(word[..<colon]), port: port)
        }
        return Line(entry: try entry(word))
    }

    private static func invalid(_ word: Substring, _ fault: String) -> RealtimeError {
        // It may be a URL with a password.
        let text = String(word)
        let shown = text.contains("@") ? HTTPURL.redacted(text) : text.quoted(upTo: 100)
        return RealtimeError(.invalidArgument, "the no-proxy list has \(shown), \(fault)")
    }

    private static func entry(_ word: Substring) throws(RealtimeError) -> Entry {
        func invalid(_ fault: String) -> RealtimeError { NoProxyList.invalid(word, fault) }
        if word == "*" { return .all }
        let parts = word.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let isBracketed = parts[0].hasPrefix("[") && parts[0].hasSuffix("]")
        let name = isBracketed ? parts[0].dropFirst().dropLast() : parts[0]
        if let address = IPAddress(String(name)) {
            let most = address.family.bitCount
            guard parts.count == 2 else { return .network(address, bits: most) }
            guard parts[1].utf8.allSatisfy({ $0.isASCIIDigit }), let bits = Int(parts[1]),
                bits <= most
            else { throw invalid("whose length is not in 0 to \(most)") }
            return .network(address, bits: bits)
        }
        guard parts.count == 1 else { throw invalid("which is not a network such as 10.0.0.0/8") }
        var domain = name.hasPrefix(".") ? name.dropFirst() : name
        if domain.hasSuffix(".") { domain = domain.dropLast() }
        do throws(HostName.Fault) {
            guard let name = try hostName(String(domain)) else { throw .forbidden }
            return .domain(name)
        } catch .needsLibrary {
            throw invalid(HostName.needsLibrary)
        } catch {
            throw invalid("which is neither a host, a domain, an address nor \"*\"")
        }
    }
}

private func words(_ text: String) -> [Substring] {
    text.split { $0 == "," || $0 == " " || $0 == "\t" }
}

private func isName(_ name: String, in domain: String) -> Bool {
    let name = name.utf8
    let domain = domain.utf8
    guard name.count >= domain.count else { return false }
    let tail = name.suffix(domain.count)
    guard zip(tail, domain).allSatisfy({ $0.asciiLowercased == $1.asciiLowercased }) else {
        return false
    }
    return name.count == domain.count
        || name.dropLast(domain.count).last == UInt8(ascii: ".")
}

/// A host name, an international one in its xn-- form; nil if it is not one. ":" and "[" would
/// change the meaning of libcurl's format.
func hostName(_ text: String) throws(HostName.Fault) -> String? {
    guard text.utf8.allSatisfy({ $0 < 0x80 }) else { return try HostName.ascii(text) }
    let isName = text.utf8.allSatisfy { isTokenByte($0) && $0 != UInt8(ascii: "*") }
    return isName && !text.isEmpty ? text : nil
}
