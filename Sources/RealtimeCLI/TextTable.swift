/// Lays texts out in columns.
enum TextTable {
    private static let gap = 2
    /// No column gets narrower than this, unless the terminal is.
    private static let least = 4

    /// The rows as lines that fit the width. Columns are as wide as their widest cell; if there is
    /// not enough room, the widest columns give way, and columns for which no room is left are left
    /// out.
    static func lines(_ rows: [[String]], width: Int) -> [String] {
        let count = rows.map(\.count).max() ?? 0
        let natural = (0..<count).map { column in
            rows.map { $0.count > column ? columns(of: $0[column]) : 0 }.max() ?? 0
        }
        let widths = fit(natural, width)
        return rows.map { row in
            var line = ""
            var start = 1
            for (index, (cell, width)) in zip(row, widths).enumerated() {
                let shown = cut(cell, to: width)
                start += width + gap
                line += shown
                guard index < widths.count - 1 else { break }
                line += padding(shown, width + gap, before: start)
            }
            while line.last == " " { line.removeLast() }
            return line
        }
    }

    /// What leads from the end of a cell to the next one. The columns that other characters than
    /// those of ASCII take are known to the terminal alone, so the cursor is moved (ECMA-48: EL,
    /// CHA).
    private static func padding(_ shown: String, _ width: Int, before start: Int) -> String {
        let isCertain = shown.utf8.allSatisfy { $0 < 0x80 }
        guard isCertain else { return "\u{1B}[K\u{1B}[\(start)G" }
        return String(repeating: " ", count: max(0, width - shown.utf8.count))
    }

    private static func fit(_ natural: [Int], _ width: Int) -> [Int] {
        var widths = natural
        while !widths.isEmpty {
            var excess = widths.reduce(0, +) + gap * (widths.count - 1) - width
            while excess > 0, let widest = widths.max(), widest > least {
                // All of the widest, down to the next one.
                let next = max(least, widths.filter { $0 < widest }.max() ?? least)
                let count = widths.count { $0 == widest }
                let less = min(widest - next, max(1, excess / count))
                for index in widths.indices where widths[index] == widest && excess > 0 {
                    widths[index] -= less
                    excess -= less
                }
            }
            if excess <= 0 { return widths }
            if widths.count == 1 { return [max(1, width)] }
            widths = Array(natural.prefix(widths.count - 1))
        }
        return widths
    }

    /// The beginning of a text, with `…` if something is missing.
    static func cut(_ text: String, to width: Int) -> String {
        guard columns(of: text) > width else { return text }
        var result = ""
        var used = 0
        for character in text {
            let wide = columns(of: String(character))
            guard used + wide <= width - 1 else { break }
            result.append(character)
            used += wide
        }
        return width > 0 ? result + "…" : ""
    }

    /// How many columns of a terminal the text takes.
    static func columns(of text: String) -> Int {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.utf8.count }
        return text.reduce(0) { $0 + columns(of: $1) }
    }

    private static func columns(of character: Character) -> Int {
        let isEmoji = character.unicodeScalars.contains(emojiPresentation)
        return isEmoji ? 2 : character.unicodeScalars.map(columns(of:)).max() ?? 0
    }

    /// After a character such as a heart, it asks for the picture in two columns (Unicode Technical
    /// Standard #51).
    private static let emojiPresentation: Unicode.Scalar = "\u{FE0F}"

    private static func columns(of scalar: Unicode.Scalar) -> Int {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default:
            let isWide = wide.contains { $0.contains(scalar.value) }
            return isWide || scalar.properties.isEmojiPresentation ? 2 : 1
        }
    }

    /// The blocks of characters that take two columns (Unicode Standard Annex #11: W and F).
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97F,
        0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,
        0x17000...0x18CFF, 0x1B000...0x1B2FF, 0x20000...0x3FFFD,
    ]
}
