/// A part of a regular expression.
indirect enum PatternNode: Sendable {
    case character(UInt32)
    /// A class, by its position among the expression's.
    case characters(Int)
    case assertion(PatternAssertion)
    /// Whether the node matches the text that follows (`isAhead`) or precedes. Consumes nothing.
    case look(PatternNode, isAhead: Bool, isNegated: Bool)
    case sequence([PatternNode])
    case choice([PatternNode])
    /// `most` is nil without a limit.
    case repeated(PatternNode, least: Int, most: Int?)
}

/// A condition for a position in the text.
enum PatternAssertion: Sendable { case start, end, lineStart, lineEnd, word, noWord }

/// The flags that change how a pattern matches. `g` does not change whether it matches.
struct PatternFlags: Sendable {
    var ignoresCase = false
    var isMultiline = false
    var dotMatchesAll = false
    var isUnicode = false
    /// Matches only at the beginning of the text.
    var isSticky = false
}
