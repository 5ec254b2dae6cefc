package import Wire

/// Checks the names of files and folders in options.
package enum FileName {
    /// Rejects PEM text that was given instead of the name of a file that has it. It may be a
    /// private key, so it must not become a part of an error of the system, which quotes names.
    package static func check(_ name: String, _ what: String) throws(RealtimeError) {
        guard isPEM(name) else { return }
        throw RealtimeError(
            .invalidArgument, "\(what) is PEM text; the name of a file with it is expected")
    }

    /// Whether a text contains a PEM block (RFC 7468 §2).
    package static func isPEM(_ text: String) -> Bool {
        let mark = "-----BEGIN ".utf8
        var rest = text.utf8[...]
        while rest.count >= mark.count {
            if rest.starts(with: mark) { return true }
            rest = rest.dropFirst()
        }
        return false
    }
}
