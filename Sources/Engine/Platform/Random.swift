import CShims

/// A random number, uniform in [0, 1).
package func randomFraction() -> Double {
    var bits: UInt64 = 0
    withUnsafeMutableBytes(of: &bits) { shim_random_bytes($0.baseAddress, $0.count) }
    // A Double has a precision of 53 bits.
    return Double(bits >> 11) / 0x1p53
}
