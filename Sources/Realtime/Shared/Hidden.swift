internal import Wire

/// A property that may hold a secret. `print`, interpolation, `dump` and mirrors show only whether
/// there is one, the names of headers, or a URL without its password.
struct Hidden<Value: Sendable>: Sendable, CustomStringConvertible, CustomReflectable {
    var value: Value

    init(_ value: Value) { self.value = value }

    var description: String { Shown.text(value) }
    var customMirror: Mirror { Shown.mirror(self) }
}

/// What is shown of values that hold secrets.
enum Shown {
    static func text<Value>(_ value: Value) -> String {
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .optional, mirror.children.isEmpty { return "nil" }
        if let fields = value as? [(name: String, value: String)] {
            return "[\(fields.map { "\($0.name): …" }.joined(separator: ", "))]"
        }
        return (value as? any Collection)?.isEmpty ?? false ? "none" : "…"
    }

    /// A mirror without children. `dump` then prints the description.
    static func mirror<Subject>(_ subject: Subject) -> Mirror {
        Mirror(subject, children: [] as [Mirror.Child], ancestorRepresentation: .suppressed)
    }

    /// A URL without user, password, query and fragment.
    static func url(_ text: String) -> String { HTTPURL.redacted(text) }
}

/// A URL that may hold a password; nil for none.
struct HiddenURL: Sendable, CustomStringConvertible, CustomReflectable {
    var value: String?

    init(_ value: String?) { self.value = value }

    var description: String { value.map { Shown.url($0) } ?? "nil" }
    var customMirror: Mirror { Shown.mirror(self) }
}
