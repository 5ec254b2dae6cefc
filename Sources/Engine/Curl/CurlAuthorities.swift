import CShims
import Session

/// The certificates that TLS trusts: those that the network names; else those that the environment
/// names, as for the command curl (CURL_CA_BUNDLE, or else SSL_CERT_FILE and SSL_CERT_DIR
/// together); else the system's.
struct CurlAuthorities {
    /// A PEM file; nil for none.
    private(set) var file: String?
    /// A folder with hashed names; nil for none.
    private(set) var folder: String?

    private static let bundleVariable = "CURL_CA_BUNDLE"
    private static let fileVariable = "SSL_CERT_FILE"
    private static let folderVariable = "SSL_CERT_DIR"

    init(_ network: NetworkConfiguration) {
        file = network.caFile
        folder = network.caPath
        guard file == nil, folder == nil else { return }
        file = CurlAuthorities.value(CurlAuthorities.bundleVariable)
        guard file == nil else { return }
        file = CurlAuthorities.value(CurlAuthorities.fileVariable)
        folder = CurlAuthorities.value(CurlAuthorities.folderVariable)
    }

    private static func value(_ name: String) -> String? {
        shim_environment(name).map { String(cString: $0) }
    }

    /// The variables whose path is in libcurl's text, for messages: " (SSL_CERT_FILE)"; "" for
    /// none.
    static func variables(in text: String) -> String {
        let names = [bundleVariable, fileVariable, folderVariable].filter { name in
            value(name).map { text.utf8.contains($0.utf8) } ?? false
        }
        return names.isEmpty ? "" : " (\(names.joined(separator: ", ")))"
    }
}

extension String.UTF8View {
    fileprivate func contains(_ other: Self) -> Bool {
        var rest = self[...]
        while rest.count >= other.count {
            if rest.starts(with: other) { return true }
            rest = rest.dropFirst()
        }
        return false
    }
}
