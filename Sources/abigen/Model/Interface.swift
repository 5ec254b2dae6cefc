/// The C interface as data: the contents of `include/realtime.abi.json`, and the input of every
/// printer. Declarations are listed by kind; a chapter lists the names of its own in the order of
/// the source.
struct Interface: Codable, Equatable {
    var library: String
    var version: String
    var chapters: [Chapter] = []
    var handles: [Handle] = []
    var aliases: [Alias] = []
    var enums: [Enumeration] = []
    var structs: [Structure] = []
    var callbacks: [Callback] = []
    var functions: [Function] = []
}

/// One source file of RealtimeABI, and one section of the header.
struct Chapter: Codable, Equatable {
    /// The file's name without its extension; declarations refer to it as `chapter`.
    var name: String
    var title: String
    /// The rest of the first paragraph.
    var summary: String
    /// The lines of a short program with the usual functions, in the order of use.
    var usage: [String] = []
    /// Further paragraphs, without line breaks.
    var details: [String] = []
    /// The names declared in it, in source order.
    var declarations: [String] = []
}

/// A parsed doc comment.
struct Documentation: Codable, Equatable {
    /// One string per paragraph, without line breaks.
    var paragraphs: [String] = []
    var parameters: [ParameterText] = []
    var returns: String?

    struct ParameterText: Codable, Equatable {
        var name: String
        var text: String
    }
}

/// An opaque type: `typedef struct rt_x rt_x;`.
struct Handle: Codable, Equatable {
    var name: String
    var chapter: String
    var documentation: Documentation
    var since: String
    /// The functions that create one, and the one that frees it.
    var creators: [String] = []
    var destructor: String?
}

/// A name for a number type: `typedef int32_t rt_x;`.
struct Alias: Codable, Equatable {
    var name: String
    var type: CType
    var chapter: String
    var documentation: Documentation
    var since: String
}

/// The named values of an alias.
struct Enumeration: Codable, Equatable {
    /// The Swift enum's name: the group of its constants.
    var group: String
    /// The alias of these values, which is the type that functions take and return.
    var alias: String
    var chapter: String
    var documentation: Documentation
    var since: String
    var constants: [Constant] = []

    struct Constant: Codable, Equatable {
        /// The name in C: `RT_LOG_DEBUG`.
        var name: String
        /// The name within its group: `DEBUG`.
        var short: String
        var value: Int32
        var documentation: Documentation
        var since: String
    }
}

struct Structure: Codable, Equatable {
    var name: String
    var chapter: String
    var documentation: Documentation
    var since: String
    var fields: [Field] = []
    /// The functions that create one, and the one that frees it.
    var creators: [String] = []
    var destructor: String?

    struct Field: Codable, Equatable {
        var name: String
        var type: CType
        var documentation: Documentation
        var buffer: BufferFacts?
        var pointer: PointerFacts?
        /// Of a number: the alias with its values.
        var enumeration: String?
    }
}

struct Parameter: Codable, Equatable {
    var name: String
    var type: CType
    var role = Role.input
    var buffer: BufferFacts?
    var pointer: PointerFacts?

    enum Role: String, Codable {
        case handle, input, output, callback, user, destroy
    }
}

/// How far memory goes.
struct BufferFacts: Codable, Equatable {
    /// The parameter or field with the number of its elements.
    var length: String?
    /// Text that ends at its first NUL.
    var isTerminated: Bool?
}

/// What a pointer refers to. Whether it may be NULL is `nullable` of its type.
struct PointerFacts: Codable, Equatable {
    var lifetime: Lifetime
    /// Of what is owned: the function that frees it.
    var freedBy: String?
    /// Of text and bytes.
    var encoding: Encoding?

    /// Until when it is valid. An output with two pointers is about what it receives.
    enum Lifetime: String, Codable {
        /// The end of the call: a function copies or retains what it needs for longer.
        case call
        /// The call of the destroy function.
        case destroy
        /// The end of the handle, the struct or the argument that it came from.
        case owner
        /// The receiver owns it, and calls `freedBy`.
        case owned
        /// The function frees it.
        case taken
        /// The next call of the same callback, or its destroy function.
        case next
        /// The next call on this thread that fails.
        case failure
        /// The end of the process.
        case library
    }

    enum Encoding: String, Codable {
        case utf8, bytes
    }
}

/// A named function-pointer type.
struct Callback: Codable, Equatable {
    var name: String
    var chapter: String
    var documentation: Documentation
    var since: String
    var parameters: [Parameter]
    var result: CType
    var resultPointer: PointerFacts?
    var resultBuffer: BufferFacts?
    /// Whether it may call functions of the library.
    var mayCall = true
}

/// An exported function.
struct Function: Codable, Equatable {
    var name: String
    var chapter: String
    var documentation: Documentation
    var since: String
    var parameters: [Parameter]
    var result: CType
    var resultPointer: PointerFacts?
    var resultBuffer: BufferFacts?
    /// The type that it frees.
    var frees: String?
    /// The statuses that its comment lists, also those of functions to which it refers.
    var statuses: [String] = []
    var thread = Thread.any
    /// It may wait for something else than the work itself.
    var blocks = false
    /// In a callback, or in a stub, it may return RT_ERROR_REENTRANT.
    var isRefusedInCallbacks = false
    /// What has not begun when it is called: "start"; nil for what may be called at any time.
    var before: String?
    /// Of the setter of a plain value.
    var option: OptionFacts?

    enum Thread: String, Codable {
        case any
        /// One thread at a time for each handle.
        case one
    }
}

/// An option, as the setter of its value takes it.
struct OptionFacts: Codable, Equatable {
    /// flag, count, real, size, time, text, path or choice.
    var kind: String
    /// Callbacks cannot change it.
    var isOnce: Bool
    /// "start"; nil for an option that can be set at any time.
    var setBefore: String?
    /// Its default as C spells it; nil for none, and if another object's value is used.
    var initial: String?
    var least: Int?
    var most: Int?
    /// The longest path.
    var mostBytes: Int?
    /// "ms" or "bytes".
    var unit: String?
    /// What 0 means: "no limit".
    var zero: String?
}

/// A type as C spells it: `const char *` is base `char`, one pointer, constant.
struct CType: Codable, Hashable {
    /// A C type's name, or a name this interface declares.
    var base: String
    var pointers = 0
    /// Whether the base is `const`.
    var constant = false
    /// Whether NULL may be passed, or may occur. NULL for any other argument is
    /// RT_ERROR_INVALID_ARGUMENT, or what the function's comment says. With a length beside it,
    /// NULL is for a length of 0, unless a comment says more.
    var nullable = false

    static let void = CType(base: "void")
    var isVoid: Bool { self == .void }
}
