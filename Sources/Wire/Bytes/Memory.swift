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
}
