/// Composes the documentation of options for each language.
enum OptionWords {
    enum Language {
        case c, swift
        case python(PythonErrors)
    }

    /// The prose of an option, with other options and errors spelled as in the language.
    static func prose(
        _ option: Option, of object: OptionObject, in language: Language
    ) -> String {
        option.prose.replacing(/`(\w+)`|\b(an )?RT_ERROR_(\w+)/) { match in
            if let error = match.3 {
                let name = spelling(String(error), of: object, in: language)
                let isVowel = name.first { $0.isLetter }.map { "AEIOUaeiou".contains($0) } ?? true
                let article = isVowel || name.hasPrefix("RT_") ? "an" : "a"
                return match.2 == nil ? name : "\(article) \(name)"
            }
            let name = String(match.1 ?? "")
            guard let other = object.options.first(where: { $0.name == name }) else {
                return String(match.0)
            }
            return switch language {
            case .c: "`\(other.cName)`"
            case .swift: "`\(other.swiftName ?? other.name.camelCased)`"
            case .python: "``\(other.pythonSpelling ?? name)``"
            }
        }
    }

    /// An error. `status` has no RT_ERROR_.
    private static func spelling(
        _ status: String, of object: OptionObject, in language: Language
    ) -> String {
        switch language {
        case .c: "RT_ERROR_\(status)"
        case .swift where status == "PROTOCOL": "`.protocolViolation`"
        case .swift: "`.\(status.lowercased().camelCased)`"
        case .python(let errors): errors.spelling(status, in: object.chapter)
        }
    }

    /// "Default: 15,000; 0 means no limit."
    static func initial(
        _ option: Option, in language: Language, isOverride: Bool = false
    ) -> String {
        let none =
            switch language {
            case .c: "0"
            case .swift: isOverride ? (option.kind.isTime ? "`.zero`" : "0") : option.swiftZero
            case .python: "None"
            }
        let zero = option.zeroWords
        if let words = option.kind.words(in: language) { return words }
        switch language {
        case .c where isOverride: return option.isUnlimitedByZero ? "\(none) \(zero)." : ""
        case .c:
            let words = option.words(option.initial)
            if option.isUnlimitedByZero {
                if option.initial.isZero { return "Default: 0 (\(option.zeroState))." }
                return "Default: \(words); \(none) \(zero)."
            }
            return "Default: \(words)."
        case .swift:
            return option.isUnlimitedByZero ? "\(none) \(zero)." : ""
        case .python:
            let words = option.pythonWords
            if option.isUnlimitedByZero {
                if option.pythonInitial.isZero { return "Default None: \(option.zeroState)." }
                return "Default \(words); None \(zero)."
            }
            return "Default \(words)."
        }
    }

    /// What C's setter returns.
    static func refusals(_ option: Option, of object: OptionObject) -> String {
        let what: String? =
            switch option.kind {
            case .flag: nil
            case .count(0, nil): nil
            case .count(let least, nil): "below \(OptionDefault.grouped(least))"
            case .count(let least, let most?):
                "outside \(least) to \(OptionDefault.grouped(most))"
            case .real(let least, let most):
                "outside \(least) to \(OptionDefault.grouped(most))"
            case .bytes(_, let most?): "above \(OptionDefault.grouped(most))"
            case .bytes(let least?, nil) where least > 0: "below \(OptionDefault.grouped(least))"
            case .bytes: "above SIZE_MAX / 2"
            case .limit(let most?): "when negative or above \(OptionDefault.grouped(most))"
            case .delay, .limit: "when negative"
            case .text: nil
            case .path(let most?): "for \"\" and for more than \(most) bytes"
            case .path: "for \"\""
            case .choice: "for an unknown value"
            case .basicAuth: "for a user with a colon"
            case .bearerToken: "for \"\""
            case .reachability: "for one on another loop"
            case .headers, .list, .network, .backoff: nil
            }
        var results = ["RT_OK"]
        if let what { results.append("RT_ERROR_INVALID_ARGUMENT \(what)") }
        switch option.kind {
        case .text: results.append("RT_ERROR_INVALID_UTF8")
        case .bearerToken, .headers: results.append("RT_ERROR_INVALID_HEADER")
        case .list(let refusal): results.append("RT_ERROR_\(refusal)")
        default: break
        }
        if object.isSetAtAnyTime {
            if what == nil { results.append("RT_ERROR_INVALID_ARGUMENT for a NULL handle") }
        } else {
            results.append("RT_ERROR_STATE")
        }
        return results.joined(separator: "; ") + "."
    }
}

extension Option {
    /// A default in C's documentation.
    func words(_ initial: OptionDefault) -> String {
        guard case .choice(let choice) = kind, case .named(let name) = initial else {
            return initial.words
        }
        return "\(choice.prefix)_\(choice.find(name)?.constant ?? name)"
    }

    /// The default in Python's documentation; times are in seconds.
    var pythonWords: String {
        if case .number = pythonInitial { return pythonInitial.words }
        return python(pythonInitial)
    }

    /// A default as a Python expression.
    func python(_ initial: OptionDefault) -> String {
        guard case .choice(let choice) = kind, case .named(let name) = initial else {
            return initial.python
        }
        return choice.find(name)?.python ?? name
    }

    /// The meaning of 0: "no limit".
    var zeroState: String {
        zeroWords.hasPrefix("means ") ? String(zeroWords.dropFirst(6)) : zeroWords
    }

    /// Python's name for it: `max_size`, or `Deflate(level=…)`.
    var pythonSpelling: String? {
        guard pythonName == nil, let place = pythonPlace else { return pythonName }
        let parts = place.split(separator: ".")
        return parts.count == 2 ? "\(parts[0])(\(parts[1])=…)" : place
    }

    /// The value that means no limit in Swift.
    var swiftZero: String { kind.isTime ? "nil" : "0" }

    /// With the unit of a time; sizes have it in their names.
    var cName: String {
        switch kind {
        case .delay, .limit: "\(name)_ms"
        case .headers: "header"
        case .list: "add_\(name.dropLast())"
        default: name
        }
    }

    /// C's function, without its `rt_` and chapter.
    var cFunction: String {
        if case .list = kind { return cName }
        return "set_\(cName)"
    }

    /// C's parameter, with its type as Swift spells it.
    var cParameter: (name: String, type: String) {
        let (name, type) =
            switch kind {
            case .flag: ("enabled", "Bool")
            case .count: ("count", "UInt32")
            case .real: (name, "Double")
            case .bytes: ("bytes", "Int")
            case .delay, .limit: ("time_ms", "Int64")
            case .text: ("text", "UnsafePointer<CChar>?")
            case .path: (name, "UnsafePointer<CChar>?")
            case .choice(let choice): (name, choice.cType)
            case .network: ("network", "rt_network?")
            case .backoff: ("backoff", "rt_backoff?")
            case .reachability: ("reachability", "rt_reachability?")
            case .bearerToken: ("token", "UnsafePointer<CChar>?")
            case .basicAuth: ("user_name", "UnsafePointer<CChar>?")
            case .headers, .list: ("name", "UnsafePointer<CChar>?")
            }
        return (parameter ?? name, type)
    }
}
