import Wire

/// A regular expression as instructions for `PatternMatch`, which needs time proportional to the
/// product of the text's length and the number of instructions, whatever the expression. A
/// `MatchBudget` limits this product.
struct PatternProgram: Sendable {
    enum Instruction: Sendable {
        case character(UInt32)
        /// The class at this position of `classes`.
        case characters(Int)
        case assertion(PatternAssertion)
        /// Continues if the look-around of this number holds here.
        case look(Int, isNegated: Bool)
        /// Continues at both instructions.
        case split(Int, Int)
        case jump(Int)
        case match
    }

    /// One pass over the text. A look-around has its own, which comes before the passes that use
    /// it. The last pass is the expression itself.
    struct Pass: Sendable {
        var instructions: [Instruction] = []
        /// Whether the text is read from its end, and the parts of the expression likewise.
        let isBackward: Bool
    }

    /// The most instructions, repetitions counted as often as they are repeated.
    static let maximumInstructions = 2_000

    private(set) var passes: [Pass] = []
    let classes: [PatternClass]
    let flags: PatternFlags

    /// - Throws: `.invalidArgument` with the reason.
    init(_ source: String, _ flags: PatternFlags) throws(RealtimeError) {
        self.flags = flags
        var parser = PatternParser(source, flags)
        let node = try parser.parse()
        classes = parser.classes
        try add(node, isBackward: false)
    }

    /// How many instructions there are.
    var size: Int { passes.reduce(0) { $0 + $1.instructions.count } }

    private var remaining = PatternProgram.maximumInstructions

    private mutating func add(_ node: PatternNode, isBackward: Bool) throws(RealtimeError) {
        var pass = Pass(isBackward: isBackward)
        try emit(node, &pass)
        pass.instructions.append(.match)
        passes.append(pass)
    }

    /// - Throws: `.invalidArgument` if there are too many instructions. Nodes that emit none count
    ///   as well, so that repeating them ends.
    private mutating func emit(_ node: PatternNode, _ pass: inout Pass) throws(RealtimeError) {
        guard remaining > 0 else {
            throw .pattern(
                "more than \(PatternProgram.maximumInstructions) steps with all repetitions")
        }
        remaining -= 1
        switch node {
        case .character(let character):
            let isFolded = flags.ignoresCase
            let form = PatternCase(isUnicode: flags.isUnicode)
            pass.instructions.append(
                .character(isFolded ? form.canonical(character) : character))
        case .characters(let characters): pass.instructions.append(.characters(characters))
        case .assertion(let assertion): pass.instructions.append(.assertion(assertion))
        case .look(let inner, let isAhead, let isNegated):
            // Read backward, what begins at a position ends there.
            try add(inner, isBackward: isAhead)
            pass.instructions.append(.look(passes.count - 1, isNegated: isNegated))
        case .sequence(let nodes):
            for node in pass.isBackward ? nodes.reversed() : nodes { try emit(node, &pass) }
        case .choice(let nodes): try emit(choice: nodes, &pass)
        case .repeated(let node, let least, let most):
            for _ in 0..<least { try emit(node, &pass) }
            try emit(optional: node, times: most.map { $0 - least }, &pass)
        }
    }

    private mutating func emit(
        choice nodes: [PatternNode], _ pass: inout Pass
    ) throws(RealtimeError) {
        var jumps: [Int] = []
        for (number, node) in nodes.enumerated() {
            let isLast = number == nodes.count - 1
            let split = pass.instructions.count
            if !isLast { pass.instructions.append(.jump(0)) }
            try emit(node, &pass)
            if isLast { continue }
            jumps.append(pass.instructions.count)
            pass.instructions.append(.jump(0))
            pass.instructions[split] = .split(split + 1, pass.instructions.count)
        }
        for jump in jumps { pass.instructions[jump] = .jump(pass.instructions.count) }
    }

    /// - Parameter times: nil for any number of times.
    private mutating func emit(
        optional node: PatternNode, times: Int?, _ pass: inout Pass
    ) throws(RealtimeError) {
        guard let times else {
            let split = pass.instructions.count
            pass.instructions.append(.jump(0))
            try emit(node, &pass)
            pass.instructions.append(.jump(split))
            pass.instructions[split] = .split(split + 1, pass.instructions.count)
            return
        }
        var splits: [Int] = []
        for _ in 0..<times {
            splits.append(pass.instructions.count)
            pass.instructions.append(.jump(0))
            try emit(node, &pass)
        }
        for split in splits {
            pass.instructions[split] = .split(split + 1, pass.instructions.count)
        }
    }
}

extension RealtimeError {
    static func pattern(_ reason: String) -> RealtimeError {
        RealtimeError(.invalidArgument, "invalid regular expression: \(reason)")
    }
}
