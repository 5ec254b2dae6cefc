import Foundation

/// The exceptions that Python raises for statuses, read from its errors.py.
struct PythonErrors {
    static let file = "bindings/python/src/librealtime/_core/errors.py"

    private var names: [String: String] = [:]

    /// - Parameter root: the package's; without the file there are no exceptions of its own.
    init(under root: URL) throws {
        let path = root.appendingPathComponent(PythonErrors.file)
        guard FileManager.default.fileExists(atPath: path.path) else { return }
        let text = try String(contentsOf: path, encoding: .utf8)
        for match in text.matches(of: /rt_status\.ERROR_(\w+): (\w+),/) {
            names[String(match.1)] = String(match.2)
        }
    }

    /// The exception, with the status if others have the same exception.
    /// - Parameter status: without RT_ERROR_.
    func spelling(_ status: String, in chapter: String) -> String {
        let full = "``RT_ERROR_\(status)``"
        // A connection that was open always ends with this exception.
        if chapter == "websocket" { return "``ConnectionClosedError`` (\(full))" }
        return names[status].map { "``\($0)``" } ?? "``RealtimeError`` (\(full))"
    }
}
