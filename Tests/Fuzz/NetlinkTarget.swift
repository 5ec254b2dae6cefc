/// The kernel's answers, and the hosts file: nothing may trap, and memory is bounded. The input is
/// read as the answer to each of the three queries in turn, like the recorded ones.
func fuzzNetlink(_ input: consuming Input) {
    let bytes = input.rest
    var dump = NetlinkDump()
    for sequence in UInt32(1)...3 {
        dump.begin(sequence)
        _ = dump.read(bytes)
    }
    let view = dump.view
    var again = NetlinkDump()
    for sequence in UInt32(1)...3 {
        again.begin(sequence)
        _ = again.read(bytes)
    }
    require(view == again.view, "the same bytes give another view")
    require(view.reaches(.here), "this machine is not reached")
    for text in ["192.0.2.1", "2001:db8::1", "fe80::1", "::ffff:10.1.2.3"] {
        guard let address = IPAddress(text) else { return require(false, "no address: \(text)") }
        _ = view.reaches(.address(address))
    }
    for address in HostsFile.addresses(of: "host", in: Array(bytes)) {
        require(address.begins(with: address, length: address.family.bitCount), "not itself")
        require(address.begins(with: .any(address.family), length: 0), "not in its family")
    }
}
