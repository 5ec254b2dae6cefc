import Foundation

/// An error in the sources, with its place: C cannot express something, or a rule of the interface
/// is broken.
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

    /// The chapter's name: the file's name without folder, extension, and anything after a plus.
    var stem: String {
        let name = URL(fileURLWithPath: file).deletingPathExtension().lastPathComponent
        return name.components(separatedBy: "+")[0]
    }
}

/// An error that ends the run: a missing tool, an unreadable file, or all refusals.
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
