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

    // What the work at one character costs, in steps.
    private static let charactersOfOneStep = 8
    private static let stepsOfCase = 4
    private static let stepsOfVariants = 8

    /// - Parameter budget: if it does not suffice, the result is false.
    /// - Returns: whether the text contains a match.
    static func isMatch(
        _ program: PatternProgram, _ text: String, _ budget: inout MatchBudget
    ) -> Bool {
        let length = text.utf8.count
        guard budget.spend(program.size + 1 + length / charactersOfOneStep) else { return false }
        if program.flags.ignoresCase {
            let others = text.utf8.count { $0 >= 0xC0 }
            guard budget.spend(others * stepsOfCase) else { return false }
        }
        var match = PatternMatch(program, text)
        let last = program.passes.count - 1
        for pass in program.passes[..<last] {
            match.looks.append(match.positions(pass, &budget))
            if budget.isExceeded { return false }
        }
        return match.search(program.passes[last], &budget)
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
        /// - Parameter steps: grows by the work.
        /// - Returns: whether the end of the expression is among them.
        mutating func add(
            _ instruction: Int, _ pass: PatternProgram.Pass, _ match: PatternMatch,
            _ position: Int, _ steps: inout Int
        ) -> Bool {
            var isEnd = false
            open.append(instruction)
            while let current = open.popLast() {
                steps += 1
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

    private func search(_ pass: PatternProgram.Pass, _ budget: inout MatchBudget) -> Bool {
        var (states, next) = (States(pass), States(pass))
        states.clear()
        for position in 0...text.count {
            var steps = 1
            if position == 0 || !program.flags.isSticky,
                states.add(0, pass, self, position, &steps)
            {
                return budget.spend(steps)
            }
            guard budget.spend(steps) else { return false }
            guard position < text.count else { break }
            next.clear()
            if advance(states, to: &next, pass, from: position, to: position + 1, &budget) {
                return !budget.isExceeded
            }
            swap(&states, &next)
        }
        return false
    }

    /// At which positions the expression ends (or, read backward, begins), wherever it begins.
    private func positions(
        _ pass: PatternProgram.Pass, _ budget: inout MatchBudget
    ) -> [Bool] {
        var holds = [Bool](repeating: false, count: text.count + 1)
        var (states, next) = (States(pass), States(pass))
        states.clear()
        for step in 0...text.count {
            let position = pass.isBackward ? text.count - step : step
            let following = pass.isBackward ? position - 1 : position + 1
            var steps = 1
            if states.add(0, pass, self, position, &steps) { holds[position] = true }
            guard budget.spend(steps), step < text.count else { break }
            next.clear()
            if advance(states, to: &next, pass, from: position, to: following, &budget) {
                holds[following] = true
            }
            swap(&states, &next)
        }
        return holds
    }

    /// Reads the character between two positions.
    /// - Returns: whether the end of the expression is reached.
    private func advance(
        _ states: borrowing States, to next: inout States, _ pass: PatternProgram.Pass,
        from position: Int, to following: Int, _ budget: inout MatchBudget
    ) -> Bool {
        let read = min(position, following)
        var isEnd = false
        var variants: [UInt32]?
        var steps = states.list.count
        for state in states.list
        where reads(pass.instructions[state], read, &variants)
            && next.add(state + 1, pass, self, following, &steps)
        {
            isEnd = true
        }
        if variants != nil { steps += PatternMatch.stepsOfVariants }
        _ = budget.spend(steps)
        return isEnd
    }

    /// - Parameter variants: of the character, once they are needed.
    private func reads(
        _ instruction: PatternProgram.Instruction, _ position: Int, _ variants: inout [UInt32]?
    ) -> Bool {
        switch instruction {
        case .character(let character): return character == compared[position]
        case .characters(let number):
            guard program.flags.ignoresCase else {
                return program.classes[number].contains(text[position])
            }
            let known = variants ?? letters.variants(ofCanonical: compared[position])
            variants = known
            return program.classes[number].contains(anyOf: known)
        default: return false
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
