/// The server of an app (docs/pusher-rules.md, U1).
package struct PusherAddress: Sendable, Equatable {
    package var key: String
    /// A name or an address; nil for Pusher's own servers.
    package var host: String?
    /// A cluster of Pusher's own servers, such as `eu`.
    package var cluster: String?
    package var isSecure = true
    /// nil for 443, or 80 without TLS.
    package var port: UInt16?
    /// A prefix of the path, such as `/ws`.
    package var path: String?

    /// How the library introduces itself. Servers expect the form `platform-library`.
    package static let client = "linux-librealtime"
    private static let defaultHost = "ws.pusherapp.com"

    package init(key: String) { self.key = key }

    /// The URL with its port, even if that is the default.
    /// - Throws: `.invalidArgument` for a part that cannot be used, `.invalidURL` if the whole is
    ///   not a URL.
    package var text: String {
        get throws(RealtimeError) {
            guard !key.isEmpty else {
                throw RealtimeError(.invalidArgument, "the app key must not be empty")
            }
            let scheme = isSecure ? "wss" : "ws"
            let port = port ?? (isSecure ? 443 : 80)
            return "\(scheme)://\(try hostName):\(port)\(try prefix)/app/\(formEncoded(key))"
                + "?client=\(PusherAddress.client)&version=\(LibraryVersion.text)&protocol=7"
        }
    }

    package var url: HTTPURL {
        get throws(RealtimeError) { try HTTPURL(parsing: text, as: .webSocket) }
    }

    /// Checks a host.
    /// - Throws: `.invalidArgument` if it contains more than a name or an address.
    package static func check(host: String) throws(RealtimeError) {
        guard !host.isEmpty else {
            throw RealtimeError(.invalidArgument, "the host must not be empty")
        }
        let isAddress = host.utf8.reduce(0) { $0 + ($1 == UInt8(ascii: ":") ? 1 : 0) } > 1
        for byte in host.utf8 where byte <= 0x20 || "/?#@\\".utf8.contains(byte) {
            throw RealtimeError(
                .invalidArgument,
                "the host \(host.quoted()) must be a name or an address only, without scheme, path "
                    + "and credentials")
        }
        guard isAddress || !host.utf8.contains(UInt8(ascii: ":")) else {
            throw RealtimeError(
                .invalidArgument, "the host \(host.quoted()) has a port, which is another option")
        }
    }

    /// Checks a cluster.
    /// - Throws: `.invalidArgument` if it cannot be a part of a host name.
    package static func check(cluster: String) throws(RealtimeError) {
        let isLabel = cluster.hasBytes { byte in
            byte.isASCIIDigit || (0x61...0x7A).contains(byte.asciiLowercased)
                || byte == UInt8(ascii: "-")
        }
        guard isLabel, !cluster.isEmpty else {
            throw RealtimeError(
                .invalidArgument,
                "the cluster \(cluster.quoted()) must be a short name such as \"eu\"")
        }
    }

    private var hostName: String {
        get throws(RealtimeError) {
            guard let host else {
                guard let cluster else { return PusherAddress.defaultHost }
                try PusherAddress.check(cluster: cluster)
                return "ws-\(cluster).pusher.com"
            }
            guard cluster == nil else {
                throw RealtimeError(
                    .invalidArgument, "a host and a cluster are set; only one of them may be")
            }
            try PusherAddress.check(host: host)
            let isBare = host.utf8.contains(UInt8(ascii: ":")) && !host.utf8.starts(with: "[".utf8)
            return isBare ? "[\(host)]" : host
        }
    }

    /// The path with one slash at its front and none at its end.
    private var prefix: String {
        get throws(RealtimeError) {
            let slash = UInt8(ascii: "/")
            var bytes = Array((path ?? "").utf8.drop { $0 == slash })
            while bytes.last == slash { bytes.removeLast() }
            guard !bytes.isEmpty else { return "" }
            guard !bytes.contains(where: { $0 <= 0x20 || "?#".utf8.contains($0) }) else {
                throw RealtimeError(
                    .invalidArgument,
                    "the path \((path ?? "").quoted()) must not contain spaces, \"?\" and \"#\"")
            }
            return "/" + String(decoding: bytes, as: UTF8.self)
        }
    }
}
