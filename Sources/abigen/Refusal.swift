import Foundation

/// Something C cannot say, or the interface's own rules forbid, with the place to mend.
struct Refusal: Error, CustomStringConvertible {
    var place: Place
    var message: String

    init(_ place: Place, _ message: String) {
        self.place = place
        self.message = message
    }

    var description: String { "\(place): error: \(message)" }
}

/// A line of a source file; lines count from 1.
struct Place: CustomStringConvertible {
    var file: String
    var line: Int

    var description: String { "\(file):\(line)" }

    /// The file's name without folder and extension, and what follows a plus: the chapter's name.
    var stem: String {
        let name = URL(fileURLWithPath: file).deletingPathExtension().lastPathComponent
        return name.components(separatedBy: "+")[0]
    }
}

/// What stops the whole run: a missing tool, an unreadable file, or the refusals found.
enum Failure: Error, CustomStringConvertible {
    case message(String)
    case refused([Refusal])

    var description: String {
        switch self {
        case .message(let text): "abigen: error: \(text)"
        case .refused(let refusals): refusals.map(\.description).joined(separator: "\n")
        }
    }
}
