import Foundation
import Testing
import Wire

@testable import Session

private func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

/// A kernel's answers to the three queries, recorded in network namespaces.
private func recorded(_ name: String) throws -> [UInt8] {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    return [UInt8](try Data(contentsOf: folder.appending(path: "Fuzz/corpus/netlink/\(name)")))
}

private func steps(_ bytes: [UInt8], into dump: inout NetlinkDump) -> [NetlinkDump.Step] {
    (UInt32(1)...3).map { sequence in
        dump.begin(sequence)
        return bytes.withUnsafeBytes { dump.read($0) }
    }
}

private func view(_ name: String) throws -> NetworkView {
    var dump = NetlinkDump()
    #expect(steps(try recorded(name), into: &dump) == [.done, .done, .done])
    return dump.view
}

@Suite struct NetworkViewTests {
    @Test(arguments: [
        ("empty-loopback-down", false), ("loopback", false), ("no-carrier", false),
        ("no-default-route", true), ("default-routes", true), ("many-kinds", true),
    ])
    func recordedNetworksAreOnline(_ name: String, _ isOnline: Bool) throws {
        let view = try view(name)
        #expect(view.isOnline == isOnline)
        #expect(view.reaches(.here))
        #expect(view.reaches(.address(try address("127.0.0.1"))))
        #expect(view.reaches(.address(try address("::1"))))
    }

    @Test func aHostNeedsOnlyItsRoute() throws {
        let view = try view("no-default-route")
        #expect(view.reaches(.address(try address("10.1.2.77"))))
        #expect(!view.reaches(.address(try address("10.1.3.1"))))
        #expect(!view.reaches(.address(try address("2001:db8::1"))))
        #expect(view.reaches(.address(try address("fe80::1"))))
    }

    @Test func anAddressOfTheMachineNeedsNoCarrier() throws {
        let view = try view("no-carrier")
        #expect(view.reaches(.address(try address("10.1.2.1"))))
        #expect(!view.reaches(.address(try address("10.1.2.2"))))
    }

    @Test func aDefaultRouteReachesEverything() throws {
        let view = try view("default-routes")
        #expect(view.reaches(.address(try address("192.0.2.1"))))
        #expect(view.reaches(.address(try address("2001:db8:ffff::1"))))
    }

    @Test func aLinkLocalRouteDoesNotReachNames() throws {
        var view = NetworkView()
        view.add(usableLink: 2)
        view.add(route("169.254.0.0", 16, [2]))
        view.add(route("fe80::", 64, [2]))
        view.add(route("ff00::", 8, [2]))
        #expect(!view.isOnline)
        #expect(view.reaches(.address(try address("169.254.1.1"))))
        #expect(view.reaches(.name("printer.LOCAL")))
        #expect(!view.reaches(.name("local")))
        view.add(route("192.168.0.0", 24, [2]))
        #expect(view.isOnline)
    }

    @Test func aRouteNeedsOneOfItsLinks() throws {
        var view = NetworkView()
        view.add(route("0.0.0.0", 0, [4, 5]))
        #expect(!view.isOnline)
        view.add(usableLink: 3)
        #expect(!view.isOnline)
        view.add(usableLink: 5)
        #expect(view.isOnline)
        var unknown = NetworkView()
        unknown.add(route("0.0.0.0", 0, []))
        #expect(!unknown.isOnline)
        unknown.add(usableLink: 9)
        #expect(unknown.isOnline)
    }

    @Test func aRouterIsJudgedByItsLinks() throws {
        var view = NetworkView()
        for number in 0...NetworkView.limit {
            view.add(route("10.\(number / 256).\(number % 256).0", 24, [1]))
        }
        #expect(view.isCrowded)
        #expect(!view.isOnline)
        view.add(usableLink: 1)
        #expect(view.reaches(.address(try address("192.0.2.1"))))
    }

    private func route(_ text: String, _ length: Int, _ links: [Int32]) -> NetworkView.Route {
        NetworkView.Route(
            destination: IPAddress(text) ?? .any(.v4), prefixLength: length, links: links)
    }
}

@Suite struct NetlinkDumpTests {
    /// One message of the first answer: struct nlmsghdr and a body.
    private func message(
        _ type: UInt16, _ body: [UInt8], flags: UInt16 = 2, length: UInt32? = nil
    ) -> [UInt8] {
        words(length ?? UInt32(16 + body.count)) + halves(type, flags) + words(1, 0) + body
    }

    private func words(_ values: UInt32...) -> [UInt8] {
        values.flatMap { withUnsafeBytes(of: $0, Array.init) }
    }

    private func halves(_ values: UInt16...) -> [UInt8] {
        values.flatMap { withUnsafeBytes(of: $0, Array.init) }
    }

    private func read(_ bytes: [UInt8]) -> (NetlinkDump.Step, NetworkView) {
        var dump = NetlinkDump()
        dump.begin(1)
        return (bytes.withUnsafeBytes { dump.read($0) }, dump.view)
    }

    private func link(_ flags: UInt32, family: UInt8 = 0) -> [UInt8] {
        message(16, [family, 0, 1, 0] + words(7, flags, 0))
    }

    /// An IPv4 default route through link 7.
    private func defaultRoute(type: UInt8 = 1, attributes: [UInt8]? = nil) -> [UInt8] {
        message(
            24, [2, 0, 0, 0, 254, 0, 0, type] + words(0) + (attributes ?? halves(8, 4) + words(7)))
    }

    @Test func theEndIsReported() {
        #expect(read(message(3, words(0))).0 == .done)
        #expect(read(message(3, [])).0 == .done)
        #expect(read(message(3, words(0), flags: 0x12)).0 == .interrupted)
        #expect(read(link(0x41) + message(1, [])).0 == .more)
        #expect(read([]).0 == .more)
    }

    @Test func aRefusalIsReported() {
        let denied = words(UInt32(bitPattern: -13))
        #expect(read(message(2, denied + [UInt8](repeating: 0, count: 16))).0 == .refused(13))
        #expect(read(message(3, denied)).0 == .refused(13))
        #expect(read(message(2, words(UInt32(bitPattern: Int32.min)))).0 == .refused(.max))
        #expect(read(message(2, [])).0 == .refused(0))
    }

    @Test func wrongLengthsAreRefused() {
        for length in [0, 15, 17, 0x8000_0000, UInt32.max] {
            #expect(read(message(3, [], length: length)).0 == .malformed, "\(length)")
        }
        for count in 1..<16 {
            #expect(read(Array(message(3, words(0)).prefix(count))).0 == .malformed, "\(count)")
        }
    }

    @Test func otherAnswersAreSkipped() {
        var old = message(3, words(0))
        old[8] = 9
        #expect(read(old).0 == .more)
        #expect(read(old + message(3, words(0))).0 == .done)
    }

    @Test(arguments: [
        (UInt32(0x41), UInt8(0), true), (0x1, 0, false), (0x40, 0, false), (0x49, 0, false),
        (0x1_0043, 0, true), (0x41, 7, false),
    ])
    func aLinkCountsWhenItRuns(_ flags: UInt32, _ family: UInt8, _ isUsable: Bool) {
        #expect(read(link(flags, family: family) + defaultRoute()).1.isOnline == isUsable)
    }

    @Test func unreachableRoutesDoNotCount() {
        for type: UInt8 in [0, 2, 3, 5, 6, 7, 8] {
            #expect(!read(link(0x41) + defaultRoute(type: type)).1.isOnline)
        }
    }

    @Test func invalidAttributesAreSkipped() {
        // Shorter than its header, longer than the rest, cut inside the header, a short value.
        for attributes in [halves(0, 4), halves(9, 4) + words(7), [8, 0, 4], halves(5, 4) + [7]] {
            let view = read(link(0x41) + defaultRoute(attributes: attributes)).1
            #expect(view.isOnline, "the link is not known then, and any will do")
        }
    }

    @Test func oneOfSeveralNextHopsIsEnough() {
        let dead = halves(8) + [1, 0] + words(7)
        let other = halves(8) + [0, 0] + words(6)
        let alive = halves(8) + [0, 0] + words(7)
        func multipath(_ hops: [UInt8]) -> [UInt8] {
            halves(UInt16(4 + hops.count), 9) + hops
        }
        func isOnline(_ hops: [UInt8]) -> Bool {
            read(link(0x41) + defaultRoute(attributes: multipath(hops))).1.isOnline
        }
        #expect(!isOnline(other))
        #expect(!isOnline(other + dead))
        #expect(isOnline(other + alive))
        #expect(isOnline(other + dead + alive + halves(3, 0)))
    }

    @Test(arguments: ["no-default-route", "many-kinds"])
    func cutAnswersNeverTrapAndAreNeverWhole(_ name: String) throws {
        let bytes = try recorded(name)
        for count in 0..<bytes.count {
            var dump = NetlinkDump()
            let found = steps(Array(bytes.prefix(count)), into: &dump)
            #expect(found.last != .done)
        }
    }
}

@Suite struct ReachabilityTargetTests {
    private func hosts(
        _ url: String, _ environment: [String: String] = [:],
        _ change: (inout NetworkConfiguration) throws -> Void = { _ in }
    ) throws -> [NetworkView.Host] {
        var network = NetworkConfiguration()
        try change(&network)
        return ReachabilityTarget.hosts(
            of: try HTTPURL(parsing: url, as: .webSocket), by: network
        ) { environment[$0] }
    }

    @Test(arguments: [
        "ws://localhost/", "ws://LOCALHOST:1/", "wss://a.localhost/", "ws://127.9.9.9/",
        "ws://[::1]/", "ws://0.0.0.0/", "ws://[::]/", "ws://[::ffff:127.0.0.1]/",
    ])
    func theseAreThisMachine(_ url: String) throws { #expect(try hosts(url) == [.here]) }

    @Test func namesAndAddressesAreDistinguished() throws {
        #expect(try hosts("ws://example.org/") == [.name("example.org")])
        #expect(try hosts("ws://10.1.2.3/") == [.address(try address("10.1.2.3"))])
        #expect(try hosts("ws://[::ffff:10.1.2.3]/") == [.address(try address("10.1.2.3"))])
        #expect(try hosts("ws://[2001:db8::1]/") == [.address(try address("2001:db8::1"))])
        #expect(try hosts("ws://localhost.example.org/") == [.name("localhost.example.org")])
    }

    @Test func aUnixSocketIsLocal() throws {
        #expect(try hosts("ws://example.org/") { $0.unixSocket = "/tmp/s" } == [.here])
    }

    @Test func aConfiguredAddressCounts() throws {
        let found = try hosts("ws://Example.org:81/") {
            try $0.addResolve(host: "example.org", port: 80, address: "10.0.0.1")
            try $0.addResolve(host: "example.org", port: 81, address: "10.0.0.2")
            try $0.addResolve(host: "example.org", port: 81, address: "::1")
        }
        #expect(found == [.here])
    }

    @Test func theProxyDecides() throws {
        let proxies = [
            "http://user:p@ss@proxy.example:3128", "socks5h://proxy.example", "proxy.example:80",
        ]
        for proxy in proxies {
            #expect(
                try hosts("wss://example.org/", ["https_proxy": proxy]) == [.name("proxy.example")])
        }
        #expect(
            try hosts("ws://127.0.0.1/") { try $0.setProxy("http://[2001:db8::1]:80/") }
                == [.address(try address("2001:db8::1"))])
        #expect(
            try hosts("ws://example.org/", ["http_proxy": "http://proxy"]) { try $0.setProxy("") }
                == [.name("example.org")])
    }

    @Test func theEnvironmentIsReadAsLibcurlDoes() throws {
        let all = ["HTTP_PROXY": "cgi", "http_proxy": "plain", "HTTPS_PROXY": "secure"]
        #expect(try hosts("ws://a/", all) == [.name("plain")])
        #expect(try hosts("wss://a/", all) == [.name("secure")])
        #expect(try hosts("ws://a/", ["HTTP_PROXY": "cgi"]) == [.name("a")])
        #expect(try hosts("ws://a/", ["http_proxy": "", "ALL_PROXY": "any"]) == [.name("any")])
    }

    @Test func exceptionsBypassTheProxy() throws {
        let environment = ["http_proxy": "proxy", "no_proxy": "a"]
        #expect(try hosts("ws://a/", environment) == [.name("a")])
        #expect(try hosts("ws://b/", environment) == [.name("proxy")])
        #expect(
            try hosts("ws://a/", environment) { try $0.setNoProxy("") } == [.name("proxy")])
    }

    @Test func theWaitOnceOnlineIsShort() {
        #expect(Duration.onceOnline(random: 0) == .zero)
        #expect(Duration.onceOnline(random: 0.5) == .milliseconds(500))
    }
}

@Suite struct HostsFileTests {
    @Test func linesAreReadAsHostsFive() throws {
        let file = """
            # comment example.org
            127.0.0.1 localhost
            127.0.1.1\tMachine.lan machine  # machine2
              ::1 machine
            10.1.2.3 other\r
            nonsense machine
            """
        func found(_ name: String) -> [IPAddress] {
            HostsFile.addresses(of: name, in: Array(file.utf8))
        }
        #expect(found("MACHINE") == [try address("127.0.1.1"), try address("::1")])
        #expect(found("machine.lan") == [try address("127.0.1.1")])
        #expect(found("other") == [try address("10.1.2.3")])
        for name in ["machine2", "example.org", "127.0.0.1", "", "mach"] {
            #expect(found(name) == [], "\(name)")
        }
    }
}
