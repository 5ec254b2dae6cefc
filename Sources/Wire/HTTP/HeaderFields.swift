/// The caller's header fields, in order. The caller may add any number, so adding or setting one
/// does not search a long list. The names are tokens, and therefore ASCII.
package struct HeaderFields: Sendable, Equatable {
    package private(set) var all: [HeaderField] = []
    /// The names in `all`, in lower case. Empty while the list is short enough to search.
    private var names: Set<ByteText> = []
    private static let searchedCount = 16

    package init() {}

    package init(_ fields: [HeaderField]) {
        all = fields
        index()
    }

    package func has(_ name: String) -> Bool {
        if names.isEmpty { return all.contains { $0.name.equalsIgnoringASCIICase(name) } }
        return names.contains(HeaderFields.key(name))
    }

    package mutating func append(_ field: HeaderField) {
        all.append(field)
        if names.isEmpty { index() } else { names.insert(HeaderFields.key(field.name)) }
    }

    /// Sets a header, which replaces all with the same name. nil removes them.
    package mutating func set(_ name: String, _ value: String?) {
        if has(name) {
            all.removeAll { $0.name.equalsIgnoringASCIICase(name) }
            names.remove(HeaderFields.key(name))
        }
        if let value { append(HeaderField(name: name, value: value)) }
    }

    package static func == (a: HeaderFields, b: HeaderFields) -> Bool { a.all == b.all }

    private mutating func index() {
        guard all.count > HeaderFields.searchedCount else { return }
        names = Set(all.lazy.map { HeaderFields.key($0.name) })
    }

    /// `lowercased` would also make ASCII letters of others.
    private static func key(_ name: String) -> ByteText {
        ByteText(String(decoding: name.utf8.map { $0.asciiLowercased }, as: UTF8.self))
    }
}
