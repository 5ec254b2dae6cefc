/// Searches a text for a regular expression, keeping all states that the expression can be in at
/// a position (Thompson's construction) instead of trying them one after another.
struct PatternMatch {
    private let program: PatternProgram
    private let text: [UInt32]
    /// The text in the form in which characters are compared: canonical without regard to case.
    private let compared: [UInt32]
    private let letters: PatternCase
    /// For each look-around, whether it holds at each position.
    private var looks: [[Bool]] = []

    /// Whether the text contains a match.
    static func isMatch(_ program: PatternProgram, _ text: String) -> Bool {
        var match = PatternMatch(program, text)
        let last = program.passes.count - 1
        for pass in program.passes[..<last] { match.looks.append(match.positions(pass)) }
        return match.search(program.passes[last])
    }

    private init(_ program: PatternProgram, _ text: String) {
        self.program = program
        letters = PatternCase(isUnicode: program.flags.isUnicode)
        self.text =
            program.flags.isUnicode
            ? text.unicodeScalars.map { $0.value } : text.utf16.map { UInt32($0) }
        let letters = letters
        compared = program.flags.ignoresCase ? self.text.map { letters.canonical($0) } : self.text
    }

    /// The states at one position: instructions that read a character.
    private struct States {
        private(set) var list: [Int] = []
        /// The round in which an instruction was reached last.
        private var reached: [Int]
        private var round = 0
        private var open: [Int] = []

        init(_ pass: PatternProgram.Pass) {
            reached = [Int](repeating: 0, count: pass.instructions.count)
        }

        mutating func clear() {
            list.removeAll(keepingCapacity: true)
            round += 1
        }

        /// Adds the states that are reached from an instruction without reading.
        /// - Returns: whether the end of the expression is among them.
        mutating func add(
            _ instruction: Int, _ pass: PatternProgram.Pass, _ match: PatternMatch, _ position: Int
        ) -> Bool {
            var isEnd = false
            open.append(instruction)
            while let current = open.popLast() {
                guard reached[current] != round else { continue }
                reached[current] = round
                switch pass.instructions[current] {
                case .character, .characters: list.append(current)
                case .jump(let next): open.append(next)
                case .split(let first, let second):
                    open.append(second)
                    open.append(first)
                case .assertion(let assertion):
                    if match.holds(assertion, position) { open.append(current + 1) }
                case .look(let number, let isNegated):
                    if match.looks[number][position] != isNegated { open.append(current + 1) }
                case .match: isEnd = true
                }
            }
            return isEnd
        }
    }

    private func search(_ pass: PatternProgram.Pass) -> Bool {
        var (states, next) = (States(pass), States(pass))
        states.clear()
        for position in 0...text.count {
            if position == 0 || !program.flags.isSticky, states.add(0, pass, self, position) {
                return true
            }
            guard position < text.count else { break }
            next.clear()
            for state in states.list where reads(pass.instructions[state], position) {
                if next.add(state + 1, pass, self, position + 1) { return true }
            }
            swap(&states, &next)
        }
        return false
    }

    /// At which positions the expression ends (or, read backward, begins), wherever it begins.
    private func positions(_ pass: PatternProgram.Pass) -> [Bool] {
        var holds = [Bool](repeating: false, count: text.count + 1)
        var (states, next) = (States(pass), States(pass))
        states.clear()
        for step in 0...text.count {
            let position = pass.isBackward ? text.count - step : step
            let following = pass.isBackward ? position - 1 : position + 1
            if states.add(0, pass, self, position) { holds[position] = true }
            guard step < text.count else { break }
            next.clear()
            let read = min(position, following)
            for state in states.list where reads(pass.instructions[state], read) {
                if next.add(state + 1, pass, self, following) { holds[following] = true }
            }
            swap(&states, &next)
        }
        return holds
    }

    private func reads(_ instruction: PatternProgram.Instruction, _ position: Int) -> Bool {
        switch instruction {
        case .character(let character): character == compared[position]
        case .characters(let characters):
            program.flags.ignoresCase
                ? characters.contains(anyOf: letters.variants(ofCanonical: compared[position]))
                : characters.contains(text[position])
        default: false
        }
    }

    private func holds(_ assertion: PatternAssertion, _ position: Int) -> Bool {
        switch assertion {
        case .start: position == 0
        case .end: position == text.count
        case .lineStart: position == 0 || PatternClass.lineEnds.contains(text[position - 1])
        case .lineEnd: position == text.count || PatternClass.lineEnds.contains(text[position])
        case .word: isWord(position - 1) != isWord(position)
        case .noWord: isWord(position - 1) == isWord(position)
        }
    }

    private func isWord(_ position: Int) -> Bool {
        guard text.indices.contains(position) else { return false }
        // With the flags i and u, the Kelvin sign and the long s are letters of words.
        let isFolded = program.flags.ignoresCase && program.flags.isUnicode
        return PatternClass.words.contains(isFolded ? compared[position] : text[position])
    }
}
