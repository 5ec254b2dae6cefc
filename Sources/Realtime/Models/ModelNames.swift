/// The names that collections and fields have unless a model says otherwise (M18).
///
/// | in the model | in the documents |
/// |---|---|
/// | the type `TodoItem` | the collection `todoItems` |
/// | the property `text` | the field `text` |
/// | a relationship to one object, `list` | the field `listId` |
/// | a relationship to many objects, `categories` | the field `categoryIds` |
enum ModelNames {
    /// The collection of a type: its plural, with its first letter in lower case.
    static func collection(ofType type: String) -> String {
        guard let first = type.first else { return "" }
        return EnglishPlural.plural(of: first.lowercased() + type.dropFirst())
    }

    /// The field of a relationship.
    static func field(ofRelationship name: String, isToMany: Bool) -> String {
        EnglishPlural.singular(of: name) + (isToMany ? "Ids" : "Id")
    }
}

/// The plural of English nouns, by the rules that cover most names in programs. The last word of a
/// name such as `todoItem` counts.
enum EnglishPlural {
    /// Nouns that no rule covers.
    private static let exceptions = [
        ("person", "people"), ("child", "children"), ("man", "men"), ("woman", "women"),
        ("mouse", "mice"), ("ox", "oxen"), ("index", "indices"), ("vertex", "vertices"),
        ("matrix", "matrices"), ("tomato", "tomatoes"), ("potato", "potatoes"),
        ("hero", "heroes"), ("echo", "echoes"), ("leaf", "leaves"), ("datum", "data"),
        ("medium", "media"), ("criterion", "criteria"), ("quiz", "quizzes"), ("bus", "buses"),
        ("status", "statuses"), ("alias", "aliases"), ("bonus", "bonuses"), ("virus", "viruses"),
        ("campus", "campuses"), ("canvas", "canvases"), ("atlas", "atlases"), ("gas", "gases"),
        ("lens", "lenses"), ("menu", "menus"), ("guru", "gurus"),
    ]
    /// Nouns in `ie`, whose plural looks like that of a noun in `y`, and in `che`.
    private static let regular = [
        "movie", "cookie", "zombie", "selfie", "calorie", "pie", "tie", "cache", "database",
    ]
    /// Nouns that are their own plural.
    private static let unchanging = [
        "news", "series", "species", "sheep", "fish", "money", "equipment", "information", "rice",
        "jeans", "data", "media",
    ]
    private static let words =
        exceptions + regular.map { ($0, $0 + "s") } + unchanging.map { ($0, $0) }

    static func plural(of name: String) -> String {
        if let known = replaceLastWord(of: name, words) { return known }
        if name.hasSuffix("y"), let before = name.dropLast().last, !isVowel(before) {
            return name.dropLast() + "ies"
        }
        if name.hasSuffix("sis") { return name.dropLast(2) + "es" }
        if name.hasSuffix("fe"), !name.hasSuffix("ffe") { return name.dropLast(2) + "ves" }
        if name.hasSuffix("lf") || name.hasSuffix("rf") { return name.dropLast() + "ves" }
        return name + (["s", "x", "z", "ch", "sh"].contains { name.hasSuffix($0) } ? "es" : "s")
    }

    /// The singular of a plural; other names stay as they are.
    static func singular(of name: String) -> String {
        if let known = replaceLastWord(of: name, words.map { ($1, $0) }) { return known }
        // A singular that ends as a plural does, such as `status`.
        if replaceLastWord(of: name, words) != nil { return name }
        if ["ss", "us", "sis"].contains(where: { name.hasSuffix($0) }) { return name }
        if name.hasSuffix("ies"), name.count > 3 { return name.dropLast(3) + "y" }
        if ["lyses", "crises", "theses", "gnoses"].contains(where: { name.hasSuffix($0) }) {
            return name.dropLast(2) + "is"
        }
        if name.hasSuffix("lves") || name.hasSuffix("rves") { return name.dropLast(3) + "f" }
        if name.hasSuffix("nives") || name.hasSuffix("wives") || name.hasSuffix("lives") {
            return name.dropLast(3) + "fe"
        }
        if ["sses", "xes", "ches", "shes", "zzes"].contains(where: { name.hasSuffix($0) }) {
            return String(name.dropLast(2))
        }
        // `viruses`, but `houses` and `causes`.
        if name.hasSuffix("uses"), let before = name.dropLast(4).last, !isVowel(before) {
            return String(name.dropLast(2))
        }
        return name.hasSuffix("s") ? String(name.dropLast()) : name
    }

    private static func isVowel(_ letter: Character) -> Bool {
        "aeiou".contains(letter.lowercased())
    }

    private static func replaceLastWord(
        of name: String, _ words: [(String, String)]
    ) -> String? {
        for (word, replacement) in words {
            if name == word { return replacement }
            let capital = word.prefix(1).uppercased() + word.dropFirst()
            guard name.hasSuffix(capital) else { continue }
            return name.dropLast(word.count) + replacement.prefix(1).uppercased()
                + replacement.dropFirst()
        }
        return nil
    }
}
