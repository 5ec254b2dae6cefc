import CShims

/// Uniform in [0, 1).
package func randomFraction() -> Double {
    var bits: UInt64 = 0
    withUnsafeMutableBytes(of: &bits) { shim_random_bytes($0.baseAddress, $0.count) }
    // A Double has 53.
    return Double(bits >> 11) / 0x1p53
}
