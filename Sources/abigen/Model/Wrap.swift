/// Breaks text at spaces.
enum Wrap {
    static let width = 100

    static func lines(
        _ text: String, indent: String, hanging: String = "", width: Int
    ) -> [String] {
        var lines: [String] = []
        var current = indent
        var empty = true
        for word in text.split(separator: " ") {
            if !empty, current.count + 1 + word.count > width {
                lines.append(current)
                current = indent + hanging
                empty = true
            }
            current += empty ? "\(word)" : " \(word)"
            empty = false
        }
        if !empty { lines.append(current) }
        return lines
    }
}
