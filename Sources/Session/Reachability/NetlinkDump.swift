/// Reads the kernel's responses to requests for all links, addresses or routes (rtnetlink(7)) into
/// a `NetworkView`. It does not trust the bytes: it checks each length, skips unknown data, and
/// limits how much it keeps.
package struct NetlinkDump {
    /// The kinds of request. The numbers are the kernel's.
    package enum Question: UInt16, CaseIterable, Sendable {
        /// RTM_GETLINK
        case links = 18
        /// RTM_GETADDR
        case addresses = 22
        /// RTM_GETROUTE
        case routes = 26
    }

    package enum Step: Equatable, Sendable {
        /// The response continues in another datagram.
        case more
        case done
        /// The data changed during the response (NLM_F_DUMP_INTR), so a part may be missing.
        case interrupted
        /// The kernel rejected the request with this errno.
        case refused(Int32)
        /// The datagram is not a valid response.
        case malformed
    }

    package private(set) var view = NetworkView()
    private var sequence: UInt32 = 0
    private var isInterrupted = false

    package init() {}

    /// Prepares for the response to the request with this number.
    package mutating func begin(_ sequence: UInt32) {
        self.sequence = sequence
        isInterrupted = false
    }

    /// Reads one datagram.
    package mutating func read(_ datagram: UnsafeRawBufferPointer) -> Step {
        var rest = Bytes(datagram)
        while !rest.isEmpty {
            guard let length = rest.u32(0), let type = rest.u16(4), let flags = rest.u16(6),
                let number = rest.u32(8), let message = rest.take(Int(length), least: 16)
            else { return .malformed }
            // A response to an earlier request that was abandoned.
            guard number == sequence else { continue }
            if flags & Flags.interrupted != 0 { isInterrupted = true }
            let body = message.dropping(16)
            switch type {
            case MessageType.error: return .refused(body.error ?? 0)
            case MessageType.done:
                if let error = body.error, error != 0 { return .refused(error) }
                return isInterrupted ? .interrupted : .done
            case MessageType.newLink: readLink(body)
            case MessageType.newAddress: readAddress(body)
            case MessageType.newRoute: readRoute(body)
            default: break
            }
        }
        return .more
    }

    /// struct ifinfomsg
    private mutating func readLink(_ body: Bytes) {
        // AF_BRIDGE messages repeat the ports of a bridge.
        guard body.u8(0) == 0, let index = body.u32(4), let flags = body.u32(8),
            flags & Flags.loopback == 0, flags & Flags.usable == Flags.usable
        else { return }
        view.add(usableLink: Int32(bitPattern: index))
    }

    /// struct ifaddrmsg
    private mutating func readAddress(_ body: Bytes) {
        var found: IPAddress?
        body.dropping(8).eachAttribute { type, value in
            // On a point-to-point link, IFA_ADDRESS is the peer's address.
            if type == Attribute.localAddress || type == Attribute.address && found == nil {
                found = IPAddress(value.raw) ?? found
            }
        }
        if let found { view.add(found) }
    }

    /// struct rtmsg
    private mutating func readRoute(_ body: Bytes) {
        guard let family = body.u8(0).flatMap(IPAddress.Family.init), let length = body.u8(1),
            Int(length) <= family.bitCount, body.u8(7) == Flags.unicast,
            let flags = body.u32(8), flags & Flags.notARoute == 0
        else { return }
        var route = NetworkView.Route(
            destination: .any(family), prefixLength: Int(length), links: [])
        body.dropping(12).eachAttribute { type, value in
            switch type {
            case Attribute.destination:
                if let address = IPAddress(value.raw), address.family == family {
                    route.destination = address
                }
            case Attribute.outputLink:
                if let index = value.u32(0) { route.links = [Int32(bitPattern: index)] }
            case Attribute.multipath: route.links = NetlinkDump.nextHops(value)
            default: break
            }
        }
        view.add(route)
    }

    /// Reads a sequence of struct rtnexthop, each with its own attributes.
    private static func nextHops(_ value: Bytes) -> [Int32] {
        var rest = value
        var links: [Int32] = []
        while links.count < NetworkView.linksPerRoute, let length = rest.u16(0),
            let flags = rest.u8(2), let index = rest.u32(4), rest.take(Int(length), least: 8) != nil
        {
            if flags & UInt8(Flags.dead) == 0 { links.append(Int32(bitPattern: index)) }
        }
        return links
    }
}

// Numbers of linux/netlink.h, linux/rtnetlink.h, linux/if_addr.h and net/if.h.

private enum MessageType {
    static let error: UInt16 = 2
    static let done: UInt16 = 3
    static let newLink: UInt16 = 16
    static let newAddress: UInt16 = 20
    static let newRoute: UInt16 = 24
}

private enum Flags {
    /// NLM_F_DUMP_INTR
    static let interrupted: UInt16 = 0x10
    /// IFF_UP and IFF_RUNNING
    static let usable: UInt32 = 0x41
    /// IFF_LOOPBACK
    static let loopback: UInt32 = 8
    /// RTN_UNICAST: neither a route to this machine itself nor a blackhole.
    static let unicast: UInt8 = 1
    /// RTNH_F_DEAD
    static let dead: UInt32 = 1
    /// RTNH_F_DEAD, and RTM_F_CLONED, which marks a cache entry.
    static let notARoute: UInt32 = dead | 0x200
}

private enum Attribute {
    /// IFA_ADDRESS, IFA_LOCAL
    static let address: UInt16 = 1
    static let localAddress: UInt16 = 2
    /// RTA_DST, RTA_OIF, RTA_MULTIPATH
    static let destination: UInt16 = 1
    static let outputLink: UInt16 = 4
    static let multipath: UInt16 = 9
}

/// Bytes in the machine's byte order. Reads beyond the end return nil.
private struct Bytes {
    let raw: UnsafeRawBufferPointer

    init(_ raw: UnsafeRawBufferPointer) { self.raw = raw }

    var isEmpty: Bool { raw.isEmpty }

    func u8(_ offset: Int) -> UInt8? { value(offset) }
    func u16(_ offset: Int) -> UInt16? { value(offset) }
    func u32(_ offset: Int) -> UInt32? { value(offset) }

    private func value<Number: FixedWidthInteger & BitwiseCopyable>(_ offset: Int) -> Number? {
        guard offset + MemoryLayout<Number>.size <= raw.count else { return nil }
        return raw.loadUnaligned(fromByteOffset: offset, as: Number.self)
    }

    /// The kernel's errno, which it writes as a negative number.
    var error: Int32? { u32(0).map { Int32(clamping: -Int64(Int32(bitPattern: $0))) } }

    func dropping(_ count: Int) -> Bytes {
        Bytes(UnsafeRawBufferPointer(rebasing: raw.dropFirst(count)))
    }

    /// Takes `length` bytes from the front, and the padding up to a multiple of four. nil if there
    /// are fewer bytes, or `length` is less than `least`.
    mutating func take(_ length: Int, least: Int) -> Bytes? {
        guard length >= least, length <= raw.count else { return nil }
        defer { self = dropping((length + 3) & ~3) }
        return Bytes(UnsafeRawBufferPointer(rebasing: raw.prefix(length)))
    }

    /// Calls `body` with each whole attribute (struct rtattr).
    func eachAttribute(_ body: (_ type: UInt16, _ value: Bytes) -> Void) {
        var rest = self
        while let length = rest.u16(0), let type = rest.u16(2),
            let attribute = rest.take(Int(length), least: 4)
        {
            // Two bits say how the value is encoded (NLA_F_NESTED, NLA_F_NET_BYTEORDER).
            body(type & 0x3FFF, attribute.dropping(4))
        }
    }
}
