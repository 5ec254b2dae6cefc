package import Wire

/// The hosts to which no proxy is used: names, domains, addresses and networks (NO_PROXY).
package struct NoProxyList: Sendable, Equatable {
    private enum Entry: Sendable, Equatable {
        case all
        /// The name itself, and every name that ends in "." followed by it.
        case domain(String)
        case network(IPAddress, bits: Int)
    }

    private let entries: [Entry]

    /// - Throws: `.invalidArgument`, naming the first entry that cannot match any host.
    package init(parsing text: String) throws(RealtimeError) {
        guard !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw RealtimeError(.invalidArgument, "the no-proxy list has a control character")
        }
        var entries: [Entry] = []
        for word in words(text) { entries.append(try NoProxyList.entry(word)) }
        self.entries = entries
    }

    /// From the environment. Entries that cannot match are ignored.
    package init(ofEnvironment text: String) {
        entries = words(text).compactMap { word in try? NoProxyList.entry(word) }
    }

    /// - Parameter host: a name, or an address without brackets.
    package func contains(_ host: String) -> Bool {
        let address = IPAddress(host)
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        return entries.contains {
            switch $0 {
            case .all: true
            case .domain(let domain): address == nil && isName(name, in: domain)
            case .network(let network, let bits):
                address?.begins(with: network, length: bits) ?? false
            }
        }
    }

    private static func entry(_ word: Substring) throws(RealtimeError) -> Entry {
        func invalid(_ fault: String) -> RealtimeError {
            // It may be a URL with a password.
            let text = String(word)
            let shown = text.contains("@") ? HTTPURL.redacted(text) : text.quoted(upTo: 100)
            return RealtimeError(
                .invalidArgument,
                "the no-proxy list has \(shown), \(fault)")
        }
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
        guard !domain.isEmpty, domain.utf8.allSatisfy(isHostByte) else {
            throw invalid("which is neither a host, a domain, an address nor \"*\"")
        }
        return .domain(String(domain))
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
