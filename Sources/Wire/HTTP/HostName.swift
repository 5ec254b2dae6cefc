import CShims

package enum HostName {
    package enum Fault: Error {
        case forbidden
        case needsLibrary

        var text: String {
            switch self {
            case .forbidden: "has a host with characters that a host name must not have"
            case .needsLibrary: "has \(HostName.needsLibrary)"
            }
        }
    }

    package static let needsLibrary =
        "an international host name; install libidn2, or write it in its xn-- form"

    /// The longest name that a resolver takes, and a NUL.
    private static let mostBytes = 256

    /// A host name as it is looked up and sent: an international one in its xn-- form (IDNA 2008,
    /// RFC 5891, with the mapping of UTS 46, as browsers do).
    package static func ascii(_ host: String) throws(Fault) -> String {
        if host.hasBytes(only: isUnreserved) { return host }
        guard !host.hasBytes(only: { $0 < 0x80 }) else { throw .forbidden }
        var name = [CChar](repeating: 0, count: mostBytes)
        switch Int(shim_idna(host, &name, name.count)) {
        case SHIM_IDNA_MISSING: throw .needsLibrary
        case SHIM_IDNA_OK: break
        default: throw .forbidden
        }
        let bytes = name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        let text = String(decoding: bytes, as: UTF8.self)
        // A character may stand for one that a name must not have, such as a slash.
        guard !text.isEmpty, text.hasBytes(only: isUnreserved) else { throw .forbidden }
        return text
    }
}
