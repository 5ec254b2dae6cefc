// Replaces what the compiler would inline wherever a text is put together: a hundred bytes or more
// for each part of it. Most such texts are error messages.

extension DefaultStringInterpolation {
    @inline(never)
    mutating func appendLiteral(_ literal: String) { write(literal) }

    @inline(never)
    mutating func appendInterpolation(_ text: String) { write(text) }

    @inline(never)
    mutating func appendInterpolation(_ number: some BinaryInteger) { write(number.description) }
}

extension String {
    @inline(never)
    mutating func append(_ text: String) { write(text) }

    @inline(never)
    static func += (text: inout String, other: String) { text.write(other) }
}
