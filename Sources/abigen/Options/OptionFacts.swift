extension Interface {
    /// Says of each setter of a plain value which option it sets.
    mutating func add(_ objects: [OptionObject]) throws {
        for object in objects {
            for option in object.options where option.kind.isPlain {
                let name = "rt_\(object.chapter)_\(option.cFunction)"
                guard let index = functions.firstIndex(where: { $0.name == name }) else {
                    throw Failure.message("RealtimeABI has no '\(name)', which sets an option")
                }
                functions[index].option = OptionFacts(option, of: object)
            }
        }
    }
}

extension OptionFacts {
    fileprivate init(_ option: Option, of object: OptionObject) {
        self.init(
            kind: option.kind.word, isOnce: option.isOnce, setBefore: object.isSetBefore,
            initial: object.isOverride ? nil : option.code(option.initial))
        switch option.kind {
        case .count(let least, let most): (self.least, self.most) = (least, most)
        case .real(let least, let most): (self.least, self.most) = (least, most)
        case .bytes(let least, let most): (self.least, self.most) = (least ?? 0, most)
        case .limit(let most): (self.least, self.most) = (0, most)
        case .delay: least = 0
        case .path(let most): mostBytes = most
        default: break
        }
        if option.kind.isTime { unit = "ms" }
        if case .bytes = option.kind { unit = "bytes" }
        if option.isUnlimitedByZero { zero = option.zeroState }
    }
}

extension OptionKind {
    fileprivate var word: String {
        switch self {
        case .flag: "flag"
        case .count: "count"
        case .real: "real"
        case .bytes: "size"
        case .delay, .limit: "time"
        case .text: "text"
        case .path: "path"
        case .choice: "choice"
        case .headers, .list, .network, .backoff, .basicAuth, .bearerToken, .reachability: ""
        }
    }
}

extension Option {
    /// A default as C spells it: a number, `true`, or a constant.
    fileprivate func code(_ initial: OptionDefault) -> String? {
        switch initial {
        case .flag(let flag): "\(flag)"
        case .number(let number), .milliseconds(let number): "\(number)"
        case .real(let number): "\(number)"
        case .named: words(initial)
        case .none: nil
        }
    }
}
