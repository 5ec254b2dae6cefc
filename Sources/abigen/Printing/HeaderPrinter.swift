/// Prints the interface as a C header for C99 and later and C++11 and later.
struct HeaderPrinter {
    private let interface: Interface
    private var output = ""

    static func print(_ interface: Interface) -> String {
        var printer = HeaderPrinter(interface: interface)
        printer.header()
        return printer.output
    }

    private init(interface: Interface) {
        self.interface = interface
    }

    private mutating func header() {
        let guardName = "\(interface.library.uppercased())_H"
        let preface = HeaderPreface.text.split(separator: "\n", omittingEmptySubsequences: false)
        let heading = "Contents. To find a chapter, search for \"Chapter: \" and its name."
        comment(preface + ["", Substring(heading)] + contents)
        line("#ifndef \(guardName)")
        line("#define \(guardName)")
        line()
        for name in ["stdbool", "stddef", "stdint"] { line("#include <\(name).h>") }
        line()
        version()
        line()
        line("#ifdef __cplusplus")
        line("extern \"C\" {")
        line("#endif")
        for chapter in interface.chapters {
            line()
            print(chapter)
        }
        line()
        line("#ifdef __cplusplus")
        line("}")
        line("#endif")
        line()
        line("#endif")
    }

    /// Each chapter with the first sentence of its summary.
    private var contents: [Substring] {
        interface.chapters.flatMap { chapter in
            let summary = chapter.summary.prefixMatch(of: /.*?\.(?= |$)/)?.output ?? ""
            return Wrap.lines(
                "\(chapter.title): \(summary)", indent: "  ", hanging: "  ", width: Wrap.width - 3
            ).map { Substring($0) }
        }
    }

    private mutating func version() {
        let parts = interface.version.split(separator: ".").compactMap { Int($0) }
        let number = parts.reduce(0) { $0 * 100 + $1 }
        line("/* The version of this header; rt_version() returns that of the library in use. */")
        for (name, part) in zip(["MAJOR", "MINOR", "PATCH"], parts) {
            line("#define RT_VERSION_\(name) \(part)")
        }
        line("#define RT_VERSION_NUMBER \(number)")
        line("#define RT_VERSION_STRING \"\(interface.version)\"")
        line()
        line("/* Whether a view has a field that a later version of the library may have added. */")
        line("#define RT_VIEW_HAS(view, field) \\")
        line("  ((size_t)((const char *)(&(view)->field + 1) - (const char *)(view)) \\")
        line("   <= (view)->struct_bytes)")
    }

    private mutating func print(_ chapter: Chapter) {
        let heading = "Chapter: \(chapter.title). \(chapter.summary)"
        let paragraphs = ([heading] + chapter.details).map {
            Wrap.lines($0, indent: "", width: Wrap.width - 3).map { Substring($0) }
        }
        var blocks = paragraphs
        if !chapter.usage.isEmpty {
            blocks.insert(contentsOf: [["The usual functions, in the order of use:"]], at: 1)
            blocks.insert(chapter.usage.map { "    \($0)" }, at: 2)
        }
        comment(Array(blocks.joined(separator: [""])))
        for name in chapter.declarations {
            line()
            declaration(name)
        }
    }

    private mutating func declaration(_ name: String) {
        if let handle = interface.handles.first(where: { $0.name == name }) {
            comment(handle.documentation, since: handle.since)
            line("typedef struct \(name) \(name);")
        } else if let alias = interface.aliases.first(where: { $0.name == name }) {
            comment(alias.documentation, since: alias.since)
            line("typedef \(alias.type.spelled(name));")
        } else if let enumeration = interface.enums.first(where: { $0.group == name }) {
            print(enumeration)
        } else if let structure = interface.structs.first(where: { $0.name == name }) {
            print(structure)
        } else if let callback = interface.callbacks.first(where: { $0.name == name }) {
            comment(callback.documentation, since: callback.since)
            let head = callback.result.spelled("(*\(name))")
            prototype("typedef \(head)", callback.parameters)
        } else if let function = interface.functions.first(where: { $0.name == name }) {
            comment(function.documentation, since: function.since)
            prototype(function.result.spelled(name), function.parameters)
        }
    }

    private mutating func print(_ enumeration: Enumeration) {
        comment(enumeration.documentation, since: enumeration.since)
        line("enum {")
        for constant in enumeration.constants {
            let since = constant.since == enumeration.since ? nil : constant.since
            comment(constant.documentation, since: since, indent: "  ")
            line("  \(constant.name) = \(constant.value),")
        }
        line("};")
    }

    private mutating func print(_ structure: Structure) {
        comment(structure.documentation, since: structure.since)
        line("typedef struct \(structure.name) {")
        for field in structure.fields {
            comment(field.documentation, since: nil, indent: "  ")
            line("  \(field.type.spelled(field.name));")
        }
        line("} \(structure.name);")
    }

    private mutating func prototype(_ head: String, _ parameters: [Parameter]) {
        let spelled = parameters.map { $0.type.spelled($0.name) }
        let list = parameters.isEmpty ? "void" : spelled.joined(separator: ", ")
        let whole = "\(head)(\(list));"
        if whole.count <= Wrap.width {
            line(whole)
            return
        }
        line("\(head)(")
        var row = "   "
        for (index, parameter) in spelled.enumerated() {
            let piece = " \(parameter)\(index + 1 < spelled.count ? "," : ");")"
            if row.count + piece.count > Wrap.width {
                line(row)
                row = "   "
            }
            row += piece
        }
        line(row)
    }

    // MARK: Comments

    private mutating func comment(
        _ documentation: Documentation, since: String?, indent: String = ""
    ) {
        var parts = documentation.paragraphs
        var closing = documentation.parameters.map { "\($0.name): \($0.text)" }
        if let returns = documentation.returns { closing.append("Returns: \(returns)") }
        if let since {
            if closing.isEmpty, !parts.isEmpty {
                parts[parts.count - 1] += " Since \(since)."
            } else {
                closing.append("Since \(since).")
            }
        }
        var lines: [String] = []
        let width = Wrap.width - indent.count - 3
        for (index, part) in parts.enumerated() {
            if index > 0 { lines.append("") }
            lines += Wrap.lines(part, indent: "", width: width)
        }
        if !closing.isEmpty { lines.append("") }
        for part in closing { lines += Wrap.lines(part, indent: "", hanging: "  ", width: width) }
        if lines.count == 1, lines[0].count + indent.count + 7 <= Wrap.width {
            line("\(indent)/** \(lines[0]) */")
        } else {
            line("\(indent)/**")
            for text in lines { line("\(indent) *\(text.isEmpty ? "" : " " + text)") }
            line("\(indent) */")
        }
    }

    /// Prints a comment that documents no declaration.
    private mutating func comment(_ lines: [Substring]) {
        line("/*")
        for text in lines { line(text.isEmpty ? " *" : " * \(text)") }
        line(" */")
    }

    private mutating func line(_ text: String = "") {
        output += text
        output += "\n"
    }
}

extension CType {
    /// The declaration of `name` with this type: `const char *name`.
    func spelled(_ name: String) -> String {
        let stars = String(repeating: "*", count: pointers)
        return "\(constant ? "const " : "")\(base) \(stars)\(name)"
    }
}
