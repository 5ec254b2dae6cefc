/// The names that collections and fields have unless a model says otherwise (M18).
///
/// | in the model | in the documents |
/// |---|---|
/// | the type `TodoItem` | the collection `todoItems` |
/// | the property `text` | the field `text` |
/// | a relationship to one object, `list` | the field `listId` |
/// | a relationship to many objects, `categories` | the field `categoryIds` |
package enum ModelNames {
    /// The collection of a type: its plural, with its first letter in lower case.
    package static func collection(ofType type: String) -> String {
        guard let first = type.first else { return "" }
        return EnglishPlural.plural(of: first.lowercased() + type.dropFirst())
    }

    /// The field of a relationship.
    package static func field(ofRelationship name: String, isToMany: Bool) -> String {
        EnglishPlural.singular(of: name) + (isToMany ? "Ids" : "Id")
    }
}

/// The plural of English nouns, by the rules that cover most names in programs. The last word of a
/// name such as `todoItem` counts.
enum EnglishPlural {
    /// Nouns that no rule covers, each with its plural.
    private static let exceptions = """
        person people child children man men woman women mouse mice ox oxen index indices vertex \
        vertices matrix matrices tomato tomatoes potato potatoes hero heroes echo echoes leaf \
        leaves datum data medium media criterion criteria quiz quizzes bus buses status statuses \
        alias aliases bonus bonuses virus viruses campus campuses canvas canvases atlas atlases \
        gas gases lens lenses menu menus guru gurus
        """
    /// Nouns in `ie`, whose plural looks like that of a noun in `y`, and in `che`, each with its
    /// plural.
    private static let regular = """
        movie movies cookie cookies zombie zombies selfie selfies calorie calories pie pies tie \
        ties cache caches database databases
        """
    /// Nouns that are their own plural.
    private static let unchanging = """
        news series species sheep fish money equipment information rice jeans data media
        """

    static func plural(of name: String) -> String {
        if let known = replaceLastWord(of: name, fromPlural: false) { return known }
        if name.hasSuffix("y"), let before = name.dropLast().last, !isVowel(before) {
            return name.dropLast() + "ies"
        }
        if name.hasSuffix("sis") { return name.dropLast(2) + "es" }
        if name.hasSuffix("fe"), !name.hasSuffix("ffe") { return name.dropLast(2) + "ves" }
        if name.hasSuffix("lf") || name.hasSuffix("rf") { return name.dropLast() + "ves" }
        return name + (ends(name, "s x z ch sh") ? "es" : "s")
    }

    /// The singular of a plural; other names stay as they are.
    static func singular(of name: String) -> String {
        if let known = replaceLastWord(of: name, fromPlural: true) { return known }
        // A singular that ends as a plural does, such as `status`.
        if replaceLastWord(of: name, fromPlural: false) != nil { return name }
        if ends(name, "ss us sis") { return name }
        if name.hasSuffix("ies"), name.count > 3 { return name.dropLast(3) + "y" }
        if ends(name, "lyses crises theses gnoses") { return name.dropLast(2) + "is" }
        if ends(name, "lves rves") { return name.dropLast(3) + "f" }
        if ends(name, "nives wives lives") { return name.dropLast(3) + "fe" }
        if ends(name, "sses xes ches shes zzes") { return String(name.dropLast(2)) }
        // `viruses`, but `houses` and `causes`.
        if name.hasSuffix("uses"), let before = name.dropLast(4).last, !isVowel(before) {
            return String(name.dropLast(2))
        }
        return name.hasSuffix("s") ? String(name.dropLast()) : name
    }

    private static func isVowel(_ letter: Character) -> Bool {
        "aeiouAEIOU".contains(letter)
    }

    /// - Parameter endings: separated by spaces.
    private static func ends(_ name: String, _ endings: String) -> Bool {
        endings.split(separator: " ").contains { name.hasSuffix($0) }
    }

    /// - Returns: nil if the last word is none of those that are listed.
    private static func replaceLastWord(of name: String, fromPlural: Bool) -> String? {
        let pairs = (exceptions + " " + regular).split(separator: " ")
        for index in stride(from: 0, to: pairs.count, by: 2) {
            let (one, many) = (pairs[index], pairs[index + 1])
            let (word, other) = fromPlural ? (many, one) : (one, many)
            if let replaced = replaceLastWord(of: name, word, other) { return replaced }
        }
        for word in unchanging.split(separator: " ") {
            if let replaced = replaceLastWord(of: name, word, word) { return replaced }
        }
        return nil
    }

    private static func replaceLastWord(
        of name: String, _ word: Substring, _ replacement: Substring
    ) -> String? {
        if name == word { return String(replacement) }
        guard name.hasSuffix(capitalized(word)) else { return nil }
        return name.dropLast(word.count) + capitalized(replacement)
    }

    private static func capitalized(_ word: Substring) -> String {
        word.prefix(1).uppercased() + word.dropFirst()
    }
}
