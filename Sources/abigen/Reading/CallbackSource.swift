import Foundation

/// A callback that programs set on a handle: the method of RealtimeABI that makes an engine handler
/// of it. Its setter is printed.
struct CallbackSetter {
    /// C's function: `rt_longpoll_on_open`.
    var name: String
    /// Of the handle: `longpoll`.
    var noun: String
    /// The function that runs the method on what the handle refers to, and returns a status.
    var runner: String
    /// `onOpen`.
    var method: String
    var mayThrow: Bool
    /// C's type of the callback: `rt_opened_fn`.
    var type: String
    /// The lines of the doc comment, which begin with `///`.
    var comment: [String]
    var place: Place

    /// C's name for the handle in setters.
    var parameter: String { noun.components(separatedBy: "_").last ?? noun }
}

/// Reads callbacks from the methods of annotated extensions:
///
///     /// - Callbacks: longpoll, longpollHandlers
///     extension LongPollHandlers {
///         /// Sets the callback for messages. Since 0.1.
///         mutating func onMessage(_ box: CallbackBox<rt_event_fn>) {
///
/// The annotation names the handle, and the function that runs the method. Every method of such an
/// extension sets a callback.
struct CallbackSource {
    /// In the order of their files.
    private(set) var setters: [CallbackSetter] = []

    nonisolated(unsafe) private static let annotation = /^\/\/\/ - Callbacks: ([a-z_]+), (\w+)$/
    nonisolated(unsafe) private static let method =
        /^(?:mutating )?func (on[A-Z]\w*)\(\s*_ box: CallbackBox<(rt_\w+)>\s*\)(.*)/

    init(files: [(path: String, lines: [String])]) throws {
        var refusals: [Refusal] = []
        for file in files { read(file.path, file.lines, &refusals) }
        for (index, setter) in setters.enumerated()
        where setters[..<index].contains(where: { $0.name == setter.name }) {
            refusals.append(Refusal(setter.place, "there are two setters '\(setter.name)'"))
        }
        guard refusals.isEmpty else { throw Failure.refused(refusals) }
    }

    private mutating func read(_ path: String, _ lines: [String], _ refusals: inout [Refusal]) {
        var handle: (noun: String, runner: String)?
        var comment: [String] = []
        for (index, line) in lines.enumerated() {
            let text = line.trimmingCharacters(in: .whitespaces)
            if text.hasPrefix("///") {
                comment.append(text)
                continue
            }
            defer { comment = [] }
            if let last = comment.last, last.hasPrefix("/// - Callbacks:") {
                let place = Place(file: path, line: index)
                guard let words = last.wholeMatch(of: CallbackSource.annotation),
                    text.hasPrefix("extension ")
                else {
                    refusals.append(
                        Refusal(
                            place, "write '- Callbacks: NOUN, RUNNER' above an extension"))
                    continue
                }
                handle = (String(words.1), String(words.2))
            } else if line == "}" {
                handle = nil
            } else if let handle, CallbackSource.declares(text, indent: line) {
                let place = Place(file: path, line: index + 1)
                let head = CallbackSource.head(lines[index...])
                guard let match = head.wholeMatch(of: CallbackSource.method) else {
                    refusals.append(
                        Refusal(
                            place, "write 'func onWhat(_ box: CallbackBox<rt_what_fn>)'"))
                    continue
                }
                guard let first = comment.first, !first.hasPrefix("/// - ") else {
                    refusals.append(Refusal(place, "'\(match.1)' has no documentation"))
                    continue
                }
                setters.append(
                    CallbackSetter(
                        name: "rt_\(handle.noun)_\(String(match.1).snakeCased)", noun: handle.noun,
                        runner: handle.runner, method: String(match.1),
                        mayThrow: match.3.contains("throws"), type: String(match.2),
                        comment: comment, place: place))
            }
        }
    }

    /// Whether a line declares a member of the extension.
    private static func declares(_ text: String, indent line: String) -> Bool {
        line.prefix { $0 == " " }.count == 4 && text.contains(/\b(?:func|var|let|init|static)\b/)
    }

    /// A declaration up to its body, on one line.
    private static func head(_ lines: ArraySlice<String>) -> String {
        lines.joined(separator: " ").prefix { $0 != "{" }.trimmingCharacters(in: .whitespaces)
    }
}

extension String {
    /// `onMemberAdded` becomes `on_member_added`.
    var snakeCased: String {
        map { $0.isUppercase ? "_\($0.lowercased())" : String($0) }.joined()
    }
}
