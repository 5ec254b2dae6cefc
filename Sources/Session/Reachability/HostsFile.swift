/// The lines of /etc/hosts (hosts(5)). A name that is found there may lead to this machine, for
/// which no network is needed.
package enum HostsFile {
    /// The most bytes of the file that are read.
    package static let limit = 256 << 10

    /// The addresses that the file lists for a name.
    package static func addresses(of name: String, in bytes: [UInt8]) -> [IPAddress] {
        bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let fields = line.prefix { $0 != UInt8(ascii: "#") }
                .split { [0x20, 0x09, 0x0D].contains($0) }
            let names = fields.dropFirst()
            guard let first = fields.first,
                names.contains(where: { isName($0, name) })
            else { return nil }
            return IPAddress(String(decoding: first, as: UTF8.self))
        }
    }

    private static func isName(_ field: ArraySlice<UInt8>, _ name: String) -> Bool {
        field.elementsEqual(name.utf8) { lowercased($0) == lowercased($1) }
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
    }
}
