import CShims

/// Memory for what a peer sends, which may be more than this process can have. Swift ends the
/// process if an allocation fails, so large ones are asked for before.
package enum Memory {
    /// Smaller allocations are not asked for.
    static let large = 1 << 20
    /// What else the process needs meanwhile.
    private static let reserve = 4 << 20

    /// Whether this process can have so many bytes more.
    package static func has(_ bytes: Int) -> Bool {
        bytes < large || bytes < .max - reserve && shim_has_memory(bytes + reserve)
    }

    /// The error for what needs more memory than there is.
    /// - Parameters:
    ///   - what: it is, with an article.
    ///   - bytes: how large it is at least.
    package static func exceeded(_ what: String, _ bytes: Int) -> RealtimeError {
        exceeded("\(what) of \(bytes) bytes or more")
    }

    static func exceeded(_ what: String) -> RealtimeError {
        RealtimeError(
            .tooLarge, "this process has no memory for \(what)",
            systemError: Int32(shim_no_memory))
    }
}

extension RealtimeError {
    /// The error for a message that was not read, with this error, because it is too large.
    /// - Parameters:
    ///   - server: it came from.
    ///   - option: its name, with the words around it, unless memory was the limit.
    package func tooLarge(from server: String, _ option: String) -> RealtimeError {
        guard systemError == 0 else {
            return RealtimeError(.tooLarge, "\(message) from \(server)", systemError: systemError)
        }
        return RealtimeError(.tooLarge, "\(server) sent \(message)\(option)")
    }
}
