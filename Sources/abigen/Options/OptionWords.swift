/// The documentation of options, in each language's words.
enum OptionWords {
    enum Language { case c, swift, python }

    /// The prose of an option, with the names of others and of errors as the language spells them.
    static func prose(
        _ option: Option, of object: OptionObject, in language: Language
    ) -> String {
        option.prose.replacing(/`(\w+)`|\bRT_ERROR_(\w+)/) { match in
            if let error = match.2 {
                guard language == .swift else { return String(match.0) }
                let isTaken = error == "PROTOCOL"
                let name = isTaken ? "protocolViolation" : String(error).lowercased().camelCased
                return "`.\(name)`"
            }
            let name = String(match.1 ?? "")
            guard let other = object.options.first(where: { $0.name == name }) else {
                return String(match.0)
            }
            return switch language {
            case .c: "`\(other.cName)`"
            case .swift: "`\(other.swiftName)`"
            case .python: "``\(other.pythonName ?? name)``"
            }
        }
    }

    /// "Default 15,000; 0 is no limit."
    static func initial(_ option: Option, in language: Language) -> String {
        let none =
            switch language {
            case .c: "0"
            case .swift: option.kind == .limit ? "nil" : "0"
            case .python: "None"
            }
        switch language {
        case .c:
            if option.isUnlimitedByZero {
                if option.initial.isZero { return "Default 0: no limit." }
                return "Default \(option.initial.words); \(none) is no limit."
            }
            return "Default \(option.initial.words)."
        case .swift:
            return option.isUnlimitedByZero ? "\(none) is no limit." : ""
        case .python:
            let words = option.pythonInitial
            if option.isUnlimitedByZero {
                if words.isZero { return "Default None: no limit." }
                return "Default \(words.pythonWords); None is no limit."
            }
            return "Default \(words.pythonWords)."
        }
    }

    /// What a setter refuses, as C documents it.
    static func refusals(_ option: Option) -> String {
        let what: String? =
            switch option.kind {
            case .flag: nil
            case .count(0, nil): nil
            case .count(let least, nil): "below \(OptionDefault.grouped(least))"
            case .count(let least, let most?):
                "outside \(least) to \(OptionDefault.grouped(most))"
            case .bytes(0): "above SIZE_MAX / 2"
            case .bytes(let least?): "below \(OptionDefault.grouped(least))"
            case .bytes(nil): "above SIZE_MAX / 2"
            case .delay, .limit: "when negative"
            case .text: nil
            }
        let refused = what.map { " RT_ERROR_INVALID_ARGUMENT \($0);" } ?? ""
        let encoding = option.kind == .text ? " RT_ERROR_INVALID_UTF8;" : ""
        return "RT_OK;\(refused)\(encoding) RT_ERROR_STATE."
    }
}

extension OptionDefault {
    /// As Python's documentation says it: times are seconds.
    var pythonWords: String {
        switch self {
        case .flag, .milliseconds, .none: python
        case .number: words
        }
    }
}

extension Option {
    /// With the unit of a time; sizes have it in their names.
    var cName: String { kind.isTime ? "\(name)_ms" : name }

    /// C's parameter, with its type as Swift spells it.
    var cParameter: (name: String, type: String) {
        let (name, type) =
            switch kind {
            case .flag: ("enabled", "Bool")
            case .count: ("count", "UInt32")
            case .bytes: ("bytes", "Int")
            case .delay, .limit: ("time_ms", "Int64")
            case .text: ("text", "UnsafePointer<CChar>?")
            }
        return (parameter ?? name, type)
    }
}
