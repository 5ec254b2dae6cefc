import Foundation

/// Reads the interface from the symbol graph, its sources, and the C structs. Collects all errors,
/// so that one run reports all of them.
struct InterfaceReader {
    private let sources: SourceFiles
    private var types = TypeMapping()
    private var interface: Interface
    private var refusals: [Refusal] = []
    private var structs: [StructReader.Found]
    /// Where the callbacks of printed setters are declared.
    private let origins: [String: Place]
    private var places: [String: Place] = [:]

    /// A top-level symbol and where it is declared.
    private struct Item {
        var symbol: SymbolGraph.Symbol
        var place: Place
        /// By what the header's order is decided: for a printed setter, the place of its callback.
        var origin: Place
        /// Of its chapter.
        var rank: Int
        var cases: [(symbol: SymbolGraph.Symbol, place: Place)] = []
    }

    init(
        sources: SourceFiles, structs: [StructReader.Found], callbacks: CallbackSource,
        library: String, version: String
    ) {
        self.sources = sources
        self.structs = structs
        origins = Dictionary(
            callbacks.setters.map { ($0.name, $0.place) }, uniquingKeysWith: { first, _ in first })
        interface = Interface(library: library, version: version)
    }

    static func read(
        _ graph: SymbolGraph, sources: SourceFiles, structs: [StructReader.Found],
        callbacks: CallbackSource, library: String, version: String
    ) throws -> Interface {
        var reader = InterfaceReader(
            sources: sources, structs: structs, callbacks: callbacks, library: library,
            version: version)
        for item in try reader.items(of: graph) {
            try reader.collect(at: item.place) { reader in try reader.add(item) }
        }
        if reader.refusals.isEmpty {
            var facts = FactReader(reader.interface, reader.places)
            facts.read()
            var pointers = PointerReader(facts.interface, reader.places)
            pointers.read()
            reader.interface = pointers.interface
            reader.refusals = facts.refusals + pointers.refusals
        }
        for found in reader.structs {
            reader.refusals.append(Refusal(found.place, "nothing uses '\(found.structure.name)'"))
        }
        guard reader.refusals.isEmpty else { throw Failure.refused(reader.refusals) }
        return reader.interface
    }

    private mutating func collect(
        at place: Place, _ work: (inout InterfaceReader) throws -> Void
    ) throws {
        do {
            try work(&self)
        } catch let refusal as Refusal {
            refusals.append(refusal)
        }
    }

    // MARK: Order

    /// The public declarations, chapter by chapter, in source order.
    private func items(of graph: SymbolGraph) throws -> [Item] {
        var items: [Item] = []
        var cases: [String: [(symbol: SymbolGraph.Symbol, place: Place)]] = [:]
        for symbol in graph.symbols where symbol.accessLevel == "public" {
            // The initializer that the compiler adds to an enum has no source.
            guard symbol.kind.identifier != "swift.init" else { continue }
            let place = try sources.place(of: symbol)
            if symbol.pathComponents.count == 1 {
                guard let rank = Naming.rank(ofChapter: place.stem) else {
                    throw Failure.refused([
                        Refusal(place, "Naming.subjects does not list '\(place.stem)'")
                    ])
                }
                let origin = origins[String(symbol.name.prefix { $0 != "(" })] ?? place
                items.append(Item(symbol: symbol, place: place, origin: origin, rank: rank))
            } else {
                cases[symbol.pathComponents[0], default: []].append((symbol, place))
            }
        }
        for index in items.indices {
            let inside = cases[items[index].symbol.name] ?? []
            items[index].cases = inside.sorted { $0.place.line < $1.place.line }
        }
        return items.sorted {
            if $0.rank != $1.rank { return $0.rank < $1.rank }
            // Generated options, in a file with a longer name, follow handwritten code.
            let (one, other) = ($0.origin.file.count, $1.origin.file.count)
            return one == other ? $0.origin.line < $1.origin.line : one < other
        }
    }

    // MARK: One declaration

    private mutating func add(_ item: Item) throws {
        try openChapter(of: item.origin)
        switch item.symbol.kind.identifier {
        case "swift.typealias": try addTypealias(item)
        case "swift.enum": try addEnumeration(item)
        case "swift.func": try addFunction(item)
        default: throw Refusal(item.place, "C has no '\(item.symbol.declaration)'")
        }
    }

    /// A chapter's title and summary are in its file, in one comment of any number of lines:
    /// `// Chapter: loop. One epoll descriptor.` Further paragraphs may follow in that comment, and
    /// code, which is indented by four more spaces.
    private mutating func openChapter(of place: Place) throws {
        guard interface.chapters.last?.name != place.stem else { return }
        let mark = "// Chapter: "
        let lines = try sources.contents(of: place.file).drop { !$0.hasPrefix(mark) }
        let blocks = lines.prefix { $0.hasPrefix("// ") || $0 == "//" }.split { $0 == "//" }
        let code = "//     "
        let usage = blocks.filter { $0.allSatisfy { $0.hasPrefix(code) } }
        var paragraphs = blocks.filter { !$0.allSatisfy { $0.hasPrefix(code) } }.map { lines in
            lines.map { $0.dropFirst("// ".count).trimmingCharacters(in: .whitespaces) }
                .joined(separator: " ")
        }
        let words = paragraphs.isEmpty ? "" : paragraphs.removeFirst()
        guard let stop = words.firstIndex(of: ".") else {
            throw Refusal(Place(file: place.file, line: 1), "'\(mark)title. Summary.' is missing")
        }
        let title = words[..<stop].dropFirst(mark.count - "// ".count)
        let summary = words[words.index(after: stop)...].trimmingCharacters(in: .whitespaces)
        interface.chapters.append(
            Chapter(
                name: place.stem, title: String(title), summary: summary,
                usage: usage.joined(separator: [""]).map {
                    $0.isEmpty ? "" : String($0.dropFirst(code.count))
                }, details: paragraphs))
    }

    private mutating func enter(_ name: String, prefix: String, at place: Place) throws {
        guard name.hasPrefix(prefix) else {
            throw Refusal(place, "'\(name)' must begin with '\(prefix)'")
        }
        let last = interface.chapters.count - 1
        interface.chapters[last].declarations.append(name)
        places[name] = place
    }

    private mutating func addTypealias(_ item: Item) throws {
        let name = item.symbol.name
        try enter(name, prefix: Naming.functionPrefix, at: item.place)
        let (documentation, since) = try documented(item.symbol, at: item.place)
        let chapter = item.place.stem
        let text = try sources.text(from: item.place)
        guard let equals = text.firstIndex(of: "=") else {
            throw Refusal(item.place, "'=' is missing after '\(name)'")
        }
        let type = text[text.index(after: equals)...].drop { $0.isWhitespace }
        if type.hasPrefix("@convention(c)") {
            let list = type.dropFirst("@convention(c)".count).drop { $0.isWhitespace }
            let signature = try Signature(parsing: list, at: item.place)
            let parameters = try self.parameters(signature, of: name, at: item.place)
            types.declared[name] = .callback
            interface.callbacks.append(
                Callback(
                    name: name, chapter: chapter, documentation: documentation, since: since,
                    parameters: parameters,
                    result: try types.type(signature.result, at: item.place)))
            return
        }
        let word = type.prefix { !$0.isNewline }.trimmingCharacters(in: .whitespaces)
        if word == "OpaquePointer" {
            types.declared[name] = .handle
            interface.handles.append(
                Handle(name: name, chapter: chapter, documentation: documentation, since: since))
        } else if let scalar = TypeMapping.scalars[word] {
            types.declared[name] = .alias
            interface.aliases.append(
                Alias(
                    name: name, type: CType(base: scalar), chapter: chapter,
                    documentation: documentation, since: since))
        } else {
            throw Refusal(item.place, "C has no '\(word)'; a closure type needs @convention(c)")
        }
    }

    private mutating func addEnumeration(_ item: Item) throws {
        let group = item.symbol.name
        try enter(group, prefix: Naming.constantPrefix, at: item.place)
        let (documentation, since) = try documented(item.symbol, at: item.place)
        let heading = try sources.text(from: item.place).prefix { $0 != "{" }
        guard heading.contains(/:\s*Int32\s*$/) else {
            throw Refusal(item.place, "'\(group)' must have the raw type Int32")
        }
        let first = documentation.paragraphs.first ?? ""
        guard let match = first.firstMatch(of: /^Values of `(\w+)`/),
            interface.aliases.contains(where: {
                $0.name == match.1 && $0.type == CType(base: "int32_t")
            })
        else {
            let rule = "begin the doc comment with 'Values of `x`', x being an Int32 alias above it"
            throw Refusal(item.place, rule)
        }
        var enumeration = Enumeration(
            group: group, alias: String(match.1), chapter: item.place.stem,
            documentation: documentation, since: since)
        var values: Set<Int32> = []
        for (symbol, place) in item.cases {
            try collect(at: place) { reader in
                let constant = try reader.constant(symbol, at: place, of: enumeration)
                guard values.insert(constant.value).inserted else {
                    throw Refusal(place, "another case has the value \(constant.value)")
                }
                enumeration.constants.append(constant)
            }
        }
        interface.enums.append(enumeration)
    }

    private func constant(
        _ symbol: SymbolGraph.Symbol, at place: Place, of enumeration: Enumeration
    ) throws -> Enumeration.Constant {
        guard symbol.kind.identifier == "swift.enum.case" else {
            throw Refusal(place, "C has no '\(symbol.declaration)' in an enum")
        }
        let line = try sources.text(from: place).prefix { !$0.isNewline }
        guard let match = line.firstMatch(of: /case\s+(\w+)\s*=\s*(-?[0-9]+)\s*$/),
            match.1 == symbol.name, let value = Int32(match.2)
        else {
            throw Refusal(place, "write 'case NAME = number' on a line of its own")
        }
        let doc = try comment(of: symbol, at: place)
        return Enumeration.Constant(
            name: Naming.constant(symbol.name, of: enumeration.group), short: symbol.name,
            value: value, documentation: doc.documentation,
            since: doc.since ?? enumeration.since)
    }

    private mutating func addFunction(_ item: Item) throws {
        let declaration = item.symbol.declaration
        guard let match = declaration.firstMatch(of: /@_cdecl\("(\w+)"\)\s+func\s+(\w+)/) else {
            throw Refusal(item.place, "a public function needs @_cdecl: '\(declaration)'")
        }
        let name = String(match.1)
        guard match.2 == match.1 else {
            throw Refusal(item.place, "the Swift name '\(match.2)' differs from '\(name)'")
        }
        try enter(name, prefix: Naming.functionPrefix, at: item.place)
        let (documentation, since) = try documented(item.symbol, at: item.place)
        let list = declaration[match.range.upperBound...].drop { $0.isWhitespace }
        let signature = try Signature(parsing: list, at: item.place)
        let parameters = try self.parameters(signature, of: name, at: item.place)
        for parameter in parameters where !parameter.type.nullable {
            let type = parameter.type
            guard type.pointers == 0, types.declared[type.base] != .callback else {
                let advice = "'\(parameter.name)' must be optional: a C caller can pass NULL"
                throw Refusal(item.place, advice)
            }
        }
        for parameter in documentation.parameters
        where !parameters.contains(where: { $0.name == parameter.name }) {
            throw Refusal(item.place, "no parameter is called '\(parameter.name)'")
        }
        if let noun = parameters.first?.type.base, types.declared[noun] == .handle,
            let objection = Vocabulary.objection(
                to: name, of: noun, parameters: parameters.map(\.name))
        {
            throw Refusal(item.place, objection)
        }
        if name.hasSuffix("_new"), let chapter = interface.chapters.last,
            chapter.usage.isEmpty
        {
            let words = "begin '\(chapter.title)' with the usual functions, as indented code"
            throw Refusal(item.place, words)
        }
        interface.functions.append(
            Function(
                name: name, chapter: item.place.stem, documentation: documentation, since: since,
                parameters: parameters, result: try types.type(signature.result, at: item.place)))
    }

    // MARK: Parts of a declaration

    private mutating func parameters(
        _ signature: Signature, of owner: String, at place: Place
    ) throws -> [Parameter] {
        try signature.arguments.map { argument in
            guard !Naming.reserved.contains(argument.name) else {
                throw Refusal(place, "'\(argument.name)' is a reserved word of C or C++")
            }
            try declareStructs(in: argument.type, before: owner, at: place)
            return Parameter(
                name: argument.name, type: try types.type(argument.type, at: place))
        }
    }

    /// Declares a struct before the first declaration that uses it, because Swift's order does not
    /// contain it.
    private mutating func declareStructs(
        in type: String, before owner: String, at place: Place
    ) throws {
        let words = type.split { !$0.isLetter && !$0.isNumber && $0 != "_" }.map(String.init)
        guard let index = structs.firstIndex(where: { words.contains($0.structure.name) })
        else { return }
        let found = structs.remove(at: index)
        var structure = found.structure
        structure.chapter = place.stem
        for field in structure.fields {
            try declareStructs(in: field.type.base, before: owner, at: place)
        }
        structure.fields = try structure.fields.map { field in
            var field = field
            field.type = try types.field(field.type, at: found.place)
            return field
        }
        types.declared[structure.name] = .structure
        interface.structs.append(structure)
        places[structure.name] = found.place
        let last = interface.chapters.count - 1
        let position = interface.chapters[last].declarations.firstIndex(of: owner) ?? 0
        interface.chapters[last].declarations.insert(structure.name, at: position)
    }

    /// A declaration's doc comment and its "Since", which is required.
    private func documented(
        _ symbol: SymbolGraph.Symbol, at place: Place
    ) throws -> (Documentation, since: String) {
        let doc = try comment(of: symbol, at: place)
        guard let since = doc.since else {
            throw Refusal(place, "the doc comment of '\(symbol.name)' has no 'Since'")
        }
        return (doc.documentation, since)
    }

    private func comment(of symbol: SymbolGraph.Symbol, at place: Place) throws -> DocComment {
        guard let comment = symbol.docComment, let first = comment.lines.first else {
            throw Refusal(place, "'\(symbol.name)' has no doc comment")
        }
        let start = Place(
            file: place.file, line: first.range.map { $0.start.line + 1 } ?? place.line)
        return try DocComment(lines: comment.lines.map(\.text), at: start)
    }
}
