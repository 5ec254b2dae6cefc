/// C's spelling of Swift's types. Other types cannot cross the border.
struct TypeMapping {
    /// Numbers, by their Swift names. `Int` is a size in all our signatures.
    static let scalars: [String: String] = [
        "Bool": "bool", "CChar": "char", "Double": "double", "Float": "float", "Int": "size_t",
        "Int8": "int8_t", "Int16": "int16_t", "Int32": "int32_t", "Int64": "int64_t",
        "UInt8": "uint8_t", "UInt16": "uint16_t", "UInt32": "uint32_t", "UInt64": "uint64_t",
    ]

    /// The kinds of declarations so far.
    enum Declared {
        case handle, alias, callback, structure
    }

    var declared: [String: Declared] = [:]

    /// The C type for `swift`; throws the reason if there is none.
    func type(_ swift: String, at place: Place) throws -> CType {
        if swift == "Void" || swift == "()" { return .void }
        if swift.hasSuffix("?") {
            var type = try type(String(swift.dropLast()), at: place)
            guard type.pointers > 0 || declared[type.base] == .callback else {
                throw Refusal(place, "'\(swift)' cannot be NULL in C")
            }
            type.nullable = true
            return type
        }
        if let pointee = argument(of: "UnsafePointer", in: swift) {
            return try pointer(to: pointee, constant: true, at: place)
        }
        if let pointee = argument(of: "UnsafeMutablePointer", in: swift) {
            return try pointer(to: pointee, constant: false, at: place)
        }
        if swift == "UnsafeRawPointer" {
            return CType(base: "void", pointers: 1, constant: true)
        }
        if swift == "UnsafeMutableRawPointer" { return CType(base: "void", pointers: 1) }
        if let scalar = TypeMapping.scalars[swift] { return CType(base: scalar) }
        switch declared[swift] {
        case .handle: return CType(base: swift, pointers: 1)
        case .alias, .callback: return CType(base: swift)
        case .structure: throw Refusal(place, "struct '\(swift)' must be passed by pointer")
        case nil: throw Refusal(place, "C has no '\(swift)', or it is declared further down")
        }
    }

    /// Checks a field in the header's spelling: a number, text, bytes, or a handle, which may be
    /// NULL.
    func field(_ type: CType, at place: Place) throws -> CType {
        var type = type
        if type.pointers == 0, !type.constant {
            let isNumber = TypeMapping.scalars.values.contains(type.base)
            if isNumber || declared[type.base] == .alias { return type }
        } else if type.pointers == 1, type.constant {
            if type.base == "char" || TypeMapping.scalars.values.contains(type.base)
                || declared[type.base] == .structure
            {
                return type
            }
        } else if type.pointers == 1, declared[type.base] == .handle {
            type.nullable = true
            return type
        }
        throw Refusal(
            place,
            "a field is a number, 'const char *', a pointer to constant numbers or to a constant"
                + " struct, or a handle, not '\(type.spelled(""))'")
    }

    private func pointer(to pointee: String, constant: Bool, at place: Place) throws -> CType {
        var type =
            declared[pointee] == .structure
            ? CType(base: pointee) : try type(pointee, at: place)
        guard declared[type.base] != .callback, !type.isVoid else {
            throw Refusal(place, "a pointer to '\(pointee)' is not supported")
        }
        if type.pointers > 0 {
            guard !constant, type.nullable else {
                let advice = "use UnsafeMutablePointer<\(pointee)?>"
                throw Refusal(place, "a pointer to '\(pointee)' is an output: \(advice)")
            }
        } else {
            type.constant = constant
        }
        type.pointers += 1
        type.nullable = false
        return type
    }

    /// `T` of `Name<T>`.
    private func argument(of generic: String, in swift: String) -> String? {
        guard swift.hasPrefix(generic + "<"), swift.hasSuffix(">") else { return nil }
        return String(swift.dropFirst(generic.count + 1).dropLast())
    }
}
