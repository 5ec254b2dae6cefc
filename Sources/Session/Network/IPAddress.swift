internal import CShims

/// An IPv4 or IPv6 address. An IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2) counts as IPv4.
package struct IPAddress: Hashable, Sendable {
    package enum Family: UInt8, Sendable {
        case v4 = 2
        case v6 = 10

        package var bitCount: Int { self == .v4 ? 32 : 128 }
    }

    package let family: Family
    /// The address as a number; the upper bits of an IPv4 address are 0.
    private let bits: UInt128

    /// From 4 or 16 bytes in network order; nil for any other count.
    package init?(_ bytes: some Collection<UInt8>) {
        let bits = bytes.prefix(17).reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
        switch bytes.count {
        case 4: self.init(family: .v4, bits: bits)
        case 16 where bits >> 32 == 0xFFFF:
            self.init(family: .v4, bits: bits & 0xFFFF_FFFF)
        case 16: self.init(family: .v6, bits: bits)
        default: return nil
        }
    }

    /// From text without brackets and zone.
    package init?(_ text: String) {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = text.withCString { shim_address_parse($0, &bytes) }
        self.init(bytes.prefix(Int(count)))
    }

    private init(family: Family, bits: UInt128) {
        self.family = family
        self.bits = bits
    }

    /// "0.0.0.0" or "::". The kernel connects to them as to the loopback interface.
    package static func any(_ family: Family) -> IPAddress { IPAddress(family: family, bits: 0) }

    /// Whether it is this machine, whatever interfaces it has (RFC 1122 §3.2.1.3, RFC 4291 §2.5.3).
    package var isLoopback: Bool {
        switch family {
        case .v4: bits >> 24 == 127 || bits == 0
        case .v6: bits <= 1
        }
    }

    /// Whether it is valid only on one link (RFC 3927, RFC 4291 §2.5.6).
    package var isLinkLocal: Bool {
        switch family {
        case .v4: bits >> 16 == 0xA9FE
        case .v6: bits >> 118 == 0x3FA
        }
    }

    package var isMulticast: Bool {
        switch family {
        case .v4: bits >> 28 == 0xE
        case .v6: bits >> 120 == 0xFF
        }
    }

    /// Whether the first `length` bits are those of `prefix`.
    package func begins(with prefix: IPAddress, length: Int) -> Bool {
        guard family == prefix.family, (0...family.bitCount).contains(length) else { return false }
        // A shift by all 128 bits gives 0 in Swift.
        return (bits ^ prefix.bits) >> UInt128(family.bitCount - length) == 0
    }
}
