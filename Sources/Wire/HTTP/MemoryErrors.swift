import CShims

extension Memory {
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
