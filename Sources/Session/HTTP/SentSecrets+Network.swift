package import Wire

extension SentSecrets {
    /// Adds the password of the proxy that is set.
    package mutating func add(_ network: NetworkConfiguration) {
        guard case .url(let text) = network.proxy,
            let slashes = text.utf8.firstIndex(of: UInt8(ascii: "/"))
        else { return }
        // Without its scheme, which may be that of SOCKS.
        add(try? HTTPURL(parsing: "http:\(text[slashes...])", as: .http))
    }
}
