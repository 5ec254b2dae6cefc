import Foundation

/// What Python raises for each status, as its errors.py says.
struct PythonErrors {
    static let file = "bindings/python/src/librealtime/_core/errors.py"

    private var names: [String: String] = [:]

    /// - Parameter root: of the package; one without the file has no exceptions of its own.
    init(under root: URL) throws {
        let path = root.appendingPathComponent(PythonErrors.file)
        guard FileManager.default.fileExists(atPath: path.path) else { return }
        let text = try String(contentsOf: path, encoding: .utf8)
        for match in text.matches(of: /rt_status\.ERROR_(\w+): (\w+),/) {
            names[String(match.1)] = String(match.2)
        }
    }

    /// The exception, with the status where others have the same one.
    /// - Parameter status: without RT_ERROR_.
    func spelling(_ status: String, of object: OptionObject) -> String {
        let full = "``RT_ERROR_\(status)``"
        // A connection that was open ends by one exception, whatever the cause.
        if object.chapter == "websocket" { return "``ConnectionClosedError`` (\(full))" }
        return names[status].map { "``\($0)``" } ?? "``RealtimeError`` (\(full))"
    }
}
