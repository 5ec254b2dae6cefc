import Foundation

/// An option, read from the stored property that has its value.
struct Option: Equatable {
    /// In C's spelling, without a unit: `poll_timeout`.
    var name: String
    var kind: OptionKind
    /// The path from the configuration to the property: `redirects.maximum`.
    var path: String
    /// Its documentation, for all languages; other options are named in backticks.
    var prose: String
    var initial: OptionDefault
    var since = "0.1"
    /// C's name for the setter's parameter.
    var parameter: String?
    /// nil if Swift has it elsewhere.
    var swiftName: String?
    /// nil if Python has it elsewhere.
    var pythonName: String?
    /// Where Python has it, if the annotation says so: `write_limit`, or `Deflate.level`.
    var pythonPlace: String?
    var pythonInitial: OptionDefault
    /// Takes effect once, at the start: callbacks cannot change it.
    var isOnce = false
    /// 0 means no limit, or what `zeroWords` say.
    var isUnlimitedByZero = false
    /// The meaning of 0.
    var zeroWords = "means no limit"

    /// Renames the option, also in the languages that use its name.
    mutating func rename(_ new: String) {
        if swiftName == name.camelCased { swiftName = new.camelCased }
        if pythonName == name { pythonName = new }
        name = new
    }
}

/// An object with options: a configuration in Session, and its counterpart in each language.
struct OptionObject {
    /// C's chapter: `longpoll`.
    var chapter: String
    var configuration: String
    /// Swift's struct of options: `LongPoll.Options`.
    var swiftType: String
    var file: String
    /// "start", for C's documentation of when options are set.
    var isSetBefore: String?
    /// Other objects copy it, and it is never in use: options are set at any time. Swift and Python
    /// have a value with a property for each option.
    var isValue = false
    /// Options that are not set come from another object: in Swift they are nil.
    var isOverride = false
    var options: [Option]

    /// Swift's type without the words for options: `WebSocket`, `Pusher` for `PusherClientOptions`.
    var subjects: [String] {
        swiftType.components(separatedBy: ".")
            .filter { $0 != "Options" && $0 != "Configuration" }
            .map { $0.hasSuffix("ClientOptions") ? String($0.dropLast(13)) : $0 }
    }
    /// As part of function names.
    var camelCased: String { chapter.camelCased }
    var isSetAtAnyTime: Bool { isValue || isOverride }
    /// C's name for the object in setters.
    var parameter: String { chapter.components(separatedBy: "_").last ?? chapter }
}

/// Reads options from annotated stored properties:
///
///     /// How long a poll may be held.
///     /// - Option: poll_timeout, limit
///     package var pollTimeout: Duration = .seconds(60)
///
/// A property with `- Options: TYPE` includes the options of that type; a struct with
/// `- Object: CHAPTER, SWIFT TYPE` is a configuration. HACKING.md lists the words.
struct OptionSource {
    struct Group {
        var place: Place
        var property: String
        var type: String
        var only: [String]?
        var initial: [String: OptionDefault] = [:]
        var renamed: [String: String] = [:]
        var notInSwift = Exceptions()
        var notInPython = Exceptions()
    }

    /// Options that a language has elsewhere; all if no names are given.
    struct Exceptions {
        var names: [String]?
        /// Where it has some of them.
        var places: [String: String] = [:]

        /// - Parameter words: `max_delay`, or `level=Deflate.level`.
        mutating func read(_ words: some Sequence<String>) {
            let pairs = words.map { $0.split(separator: "=", maxSplits: 1).map { String($0) } }
            names = pairs.map { $0[0] }
            for pair in pairs where pair.count == 2 { places[pair[0]] = pair[1] }
        }

        func contains(_ name: String) -> Bool {
            names.map { $0.isEmpty || $0.contains(name) } ?? false
        }
    }

    enum Entry {
        case option(Option)
        case group(Group)
    }

    private struct Found {
        var place: Place
        var object: [String]?
        var entries: [Entry] = []
    }

    private var types: [String: Found] = [:]

    nonisolated(unsafe) private static let typeDeclaration =
        /^ *(?:package |public |private )?(?:struct|extension|enum|final class|class) ([\w.]+)/
    /// Name, type and default.
    nonisolated(unsafe) private static let storedProperty =
        /^(?:package|public) (?:private\(set\) )?var (\w+)(?:: ([^={]+?))?(?: = (.+?))?(?: \{)?$/

    init(files: [(path: String, lines: [String])]) throws {
        for file in files { try read(file.path, file.lines) }
    }

    /// The objects, sorted by chapter.
    func objects() throws -> [OptionObject] {
        try types.compactMap { name, found -> OptionObject? in
            guard let words = found.object else { return nil }
            guard words.count >= 2 else {
                throw refusal(found.place, "'- Object:' has a chapter and a Swift type")
            }
            var object = OptionObject(
                chapter: words[0], configuration: name, swiftType: words[1], file: found.place.file,
                options: try options(of: name, at: found.place))
            for word in words.dropFirst(2) {
                do { try object.read(word) } catch let error as Unreadable {
                    throw refusal(found.place, error.message)
                }
            }
            let options = object.options
            if let twice = Dictionary(grouping: options, by: \.name).first(where: { $1.count > 1 })
            {
                throw refusal(found.place, "there are two options '\(twice.key)'")
            }
            if object.isOverride, let shared = options.first(where: { !$0.kind.isPlain }) {
                throw refusal(
                    found.place, "'\(shared.name)' cannot be overridden: leave it out by 'without'")
            }
            if object.isSetAtAnyTime, let once = options.first(where: \.isOnce) {
                throw refusal(
                    found.place, "'\(once.name)' cannot be 'once': it is set at any time here")
            }
            return object
        }.sorted { $0.chapter < $1.chapter }
    }

    private func options(of type: String, at place: Place) throws -> [Option] {
        guard let found = types[type] else {
            throw refusal(place, "Session and Wire have no options of \(type)")
        }
        return try found.entries.flatMap { entry -> [Option] in
            switch entry {
            case .option(let option): return [option]
            case .group(let group):
                let options = try options(of: group.type, at: group.place)
                let named =
                    (group.only ?? []) + group.initial.keys + group.renamed.keys
                    + (group.notInSwift.names ?? []) + (group.notInPython.names ?? [])
                for name in named where !options.contains(where: { $0.name == name }) {
                    throw refusal(group.place, "\(group.type) has no option '\(name)'")
                }
                return options.compactMap { option in
                    if let only = group.only, !only.contains(option.name) { return nil }
                    var option = option
                    option.path = "\(group.property).\(option.path)"
                    if let initial = group.initial[option.name] {
                        if option.pythonInitial == option.initial { option.pythonInitial = initial }
                        option.initial = initial
                    }
                    if group.notInSwift.contains(option.name) { option.swiftName = nil }
                    if group.notInPython.contains(option.name) {
                        option.pythonName = nil
                        option.pythonPlace = group.notInPython.places[option.name]
                    }
                    for (name, new) in group.renamed {
                        option.prose = option.prose.replacing("`\(name)`", with: "`\(new)`")
                    }
                    if let new = group.renamed[option.name] { option.rename(new) }
                    return option
                }
            }
        }
    }

    // MARK: One file

    private mutating func read(_ file: String, _ lines: [String]) throws {
        var nesting: [(name: String, indent: Int)] = []
        var comment: [String] = []
        for (index, line) in lines.enumerated() {
            let text = line.trimmingCharacters(in: .whitespaces)
            let indent = line.prefix { $0 == " " }.count
            if text.hasPrefix("///") {
                comment.append(
                    String(text.dropFirst(3)).trimmingCharacters(in: .whitespaces))
                continue
            }
            defer { comment = [] }
            let place = Place(file: file, line: index + 1)
            if !text.hasSuffix("}"),
                let match = line.firstMatch(of: OptionSource.typeDeclaration)
            {
                nesting.append((String(match.1), indent))
                begin(nesting.map(\.name).joined(separator: "."), place, comment)
            } else if text == "}", let last = nesting.last, last.indent == indent {
                nesting.removeLast()
            } else if !nesting.isEmpty {
                let type = nesting.map(\.name).joined(separator: ".")
                let entries = try entries(comment, text, place)
                if !entries.isEmpty {
                    types[type, default: Found(place: place)].entries += entries
                }
            }
        }
    }

    private mutating func begin(_ type: String, _ place: Place, _ comment: [String]) {
        guard let words = OptionSource.annotation("Object", in: comment) else { return }
        types[type, default: Found(place: place)].object = words
    }

    /// The words after `- NAME:`, which are separated by commas.
    private static func annotation(_ name: String, in comment: [String]) -> [String]? {
        let mark = "- \(name): "
        guard let start = comment.firstIndex(where: { $0.hasPrefix(mark) }) else { return nil }
        var text = String(comment[start].dropFirst(mark.count))
        for line in comment[(start + 1)...] where !line.isEmpty { text += " " + line }
        return text.components(separatedBy: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    }

    private func entries(_ comment: [String], _ text: String, _ place: Place) throws -> [Entry] {
        let option = OptionSource.annotation("Option", in: comment)
        let group = OptionSource.annotation("Options", in: comment)
        guard option != nil || group != nil else { return [] }
        guard let match = text.firstMatch(of: OptionSource.storedProperty) else {
            throw refusal(place, "an option must be a stored property on one line")
        }
        do {
            if let group { return [.group(try self.group(String(match.1), group, place))] }
            let prose = comment.prefix { !$0.hasPrefix("- ") }.joined(separator: " ")
            return try self.option(
                option ?? [], String(match.1), prose, match.3.map { String($0) } ?? "nil"
            ).expanded.map { .option($0) }
        } catch let error as Unreadable {
            throw refusal(place, error.message)
        }
    }

    private func refusal(_ place: Place, _ message: String) -> Failure {
        .refused([Refusal(place, message)])
    }

    private func group(_ property: String, _ words: [String], _ place: Place) throws -> Group {
        var group = Group(
            place: place, property: property, type: words[0], only: nil)
        for word in words.dropFirst() {
            let parts = word.split(separator: " ").map { String($0) }
            switch (parts.first, parts.dropFirst().first) {
            case ("only", _): group.only = Array(parts.dropFirst())
            case ("swift", "elsewhere"): group.notInSwift.read(parts.dropFirst(2))
            case ("python", "elsewhere"): group.notInPython.read(parts.dropFirst(2))
            case (let name?, "as") where parts.count == 3: group.renamed[name] = parts[2]
            case (let name?, "=") where parts.count == 3:
                group.initial[name] = try OptionDefault(parts[2])
            default: throw Unreadable("unknown word '\(word)' for a group of options")
            }
        }
        return group
    }

    private func option(
        _ words: [String], _ property: String, _ prose: String, _ source: String
    ) throws -> Option {
        guard words.count >= 2 else { throw Unreadable("an option needs a name and a kind") }
        guard words[0].wholeMatch(of: /[a-z][a-z0-9]*(_[a-z0-9]+)*/) != nil else {
            throw Unreadable("'\(words[0])' is not a valid name, such as max_delay")
        }
        let kind = try OptionKind(words[1].components(separatedBy: " "))
        guard !prose.isEmpty || kind == .network else {
            throw Unreadable("'\(words[0])' has no documentation")
        }
        let initial = kind.isPlain ? try OptionDefault(source) : .none
        var option = Option(
            name: words[0], kind: kind, path: property,
            prose: prose.trimmingCharacters(in: .whitespaces), initial: initial,
            swiftName: words[0].camelCased, pythonName: kind.isPlain ? words[0] : nil,
            pythonPlace: kind.isPlain ? nil : words[0], pythonInitial: initial)
        switch option.kind {
        case .bytes(nil, _), .limit: option.isUnlimitedByZero = true
        case .list where !words[0].hasSuffix("s"):
            throw Unreadable("'\(words[0])' must be a plural, such as safe_headers")
        case .choice(let choice):
            guard case .named(let name) = initial, choice.find(name) != nil else {
                throw Unreadable("the default '\(source)' is not one of the choices")
            }
        default: break
        }
        for word in words.dropFirst(2) {
            let parts = word.split(separator: " ", maxSplits: 1).map { String($0) }
            switch (parts.first, parts.count) {
            case ("once", 1): option.isOnce = true
            case ("unlimited", 1): option.isUnlimitedByZero = true
            case ("zero", 2):
                option.isUnlimitedByZero = true
                option.zeroWords = parts[1]
            case ("since", 2): option.since = parts[1]
            case ("parameter", 2): option.parameter = parts[1]
            case ("swift", 2): option.swiftName = parts[1] == "elsewhere" ? nil : parts[1]
            case ("python", 2) where parts[1].contains(" = "):
                let pair = parts[1].components(separatedBy: " = ")
                option.pythonName = pair[0]
                option.pythonInitial = try OptionDefault(pair[1])
                if option.kind.isTime { option.pythonInitial = option.pythonInitial.ofSeconds }
            case ("python", 2) where parts[1].hasPrefix("elsewhere"):
                option.pythonName = nil
                option.pythonPlace = parts[1].components(separatedBy: " ").dropFirst().first
            case ("python", 2): option.pythonName = parts[1]
            default: throw Unreadable("unknown word '\(word)' for an option")
            }
        }
        // In Python these are in handwritten groups.
        if !kind.isPlain, let place = option.pythonName {
            (option.pythonName, option.pythonPlace) = (nil, place)
        }
        return option
    }
}

extension OptionObject {
    /// Reads a word of `- Object:`, after the chapter and the Swift type.
    fileprivate mutating func read(_ word: String) throws {
        let parts = word.split(separator: " ").map { String($0) }
        switch (parts.first, parts.count) {
        case ("before", 2...): isSetBefore = parts.dropFirst().joined(separator: " ")
        case ("value", 1): isValue = true
        case ("override", 1): isOverride = true
        case ("python", 3...) where parts[1] == "elsewhere":
            var elsewhere = OptionSource.Exceptions()
            elsewhere.read(parts.dropFirst(2))
            try checkKnown(elsewhere.names ?? [])
            for index in options.indices where elsewhere.contains(options[index].name) {
                options[index].pythonName = nil
                options[index].pythonPlace = elsewhere.places[options[index].name]
            }
        case ("without", 2...):
            try checkKnown(parts.dropFirst())
            options.removeAll { parts.dropFirst().contains($0.name) }
        default: throw Unreadable("unknown word '\(word)' for an object")
        }
    }

    private func checkKnown(_ names: some Sequence<String>) throws {
        for name in names where !options.contains(where: { $0.name == name }) {
            throw Unreadable("there is no option '\(name)'")
        }
    }
}

extension String {
    /// `poll_timeout` becomes `pollTimeout`.
    var camelCased: String {
        let parts = split(separator: "_")
        return String(parts.first ?? "") + parts.dropFirst().map(\.capitalized).joined()
    }
}
