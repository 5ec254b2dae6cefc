// Dates in HTTP headers (RFC 9110 §5.6.7), independent of any locale.

/// Seconds since 1970 of a date in any of HTTP's three formats; nil for anything else.
/// - Parameter now: decides the century of a year with two digits, which is never more than 50
///   years ahead.
package func parseHTTPDate(_ text: String, now: Int64 = 1_767_225_600) -> Int64? {
    var reader = DateReader(Array(text.utf8))
    let day = reader.letters()
    if let day, shortDays.contains(day) {
        if reader.skip(", ") {
            return reader.fixed()
        }
        return reader.skip(" ") ? reader.asctime() : nil
    }
    guard let day, longDays.contains(day), reader.skip(", ") else { return nil }
    return reader.rfc850(now: now)
}

/// Formats a date as servers do today: `Sun, 06 Nov 1994 08:49:37 GMT`.
/// - Parameter seconds: since 1970. A time outside the years 0 to 9999 becomes the nearest inside.
package func formatHTTPDate(_ seconds: Int64) -> String {
    let clamped = min(max(seconds, firstSecond), lastSecond)
    let days = Calendar.floor(clamped, 86_400)
    let rest = clamped - days * 86_400
    let (year, month, day) = Calendar.date(days)
    // 1970 began on a Thursday.
    let weekday = shortDays[Int((days % 7 + 7 + 4) % 7)]
    let time = [rest / 3600, rest / 60 % 60, rest % 60].map { padded($0, 2) }
    return "\(weekday), \(padded(day, 2)) \(months[Int(month) - 1]) \(padded(year, 4)) "
        + time.joined(separator: ":") + " GMT"
}

private let shortDays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
private let longDays = [
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday",
]
private let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
]
/// The first and the last second of the years 0 to 9999 in the Gregorian calendar.
private let firstSecond: Int64 = -62_167_219_200
private let lastSecond: Int64 = 253_402_300_799

private func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
}

/// The Gregorian calendar for the years 0 to 9999. Days are counted from 1970-01-01.
private enum Calendar {
    static func floor(_ value: Int64, _ divisor: Int64) -> Int64 {
        let quotient = value / divisor
        return value % divisor < 0 ? quotient - 1 : quotient
    }

    /// Years begin in March, so that the leap day is the last day of a year.
    static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let year = month <= 2 ? year - 1 : year
        let era = floor(year, 400)
        let ofEra = year - era * 400
        let ofYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }

    static func date(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = floor(shifted, 146_097)
        let ofEra = shifted - era * 146_097
        let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * ofYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, ofYear - (153 * shiftedMonth + 2) / 5 + 1)
    }

    static func length(_ month: Int64, of year: Int64) -> Int64 {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        switch month {
        case 2: return isLeap ? 29 : 28
        case 4, 6, 9, 11: return 30
        default: return 31
        }
    }
}

private struct DateReader {
    private var rest: ArraySlice<UInt8>

    init(_ text: [UInt8]) { rest = text[...] }

    /// `06 Nov 1994 08:49:37 GMT`
    mutating func fixed() -> Int64? {
        guard let day = number(2), skip(" "), let month = month(), skip(" "), let year = number(4),
            skip(" "), let time = time(), skip(" GMT"), rest.isEmpty
        else { return nil }
        return seconds(year, month, day, time)
    }

    /// `06-Nov-94 08:49:37 GMT`
    mutating func rfc850(now: Int64) -> Int64? {
        guard let day = number(2), skip("-"), let month = month(), skip("-"),
            let short = number(2), skip(" "), let time = time(), skip(" GMT"), rest.isEmpty
        else { return nil }
        let clamped = min(max(now, firstSecond), lastSecond)
        let thisYear = Calendar.date(Calendar.floor(clamped, 86_400)).year
        var year = thisYear / 100 * 100 + short
        if year > thisYear + 50 { year -= 100 }
        if year <= thisYear - 50 { year += 100 }
        return seconds(year, month, day, time)
    }

    /// `Nov  6 08:49:37 1994`
    mutating func asctime() -> Int64? {
        guard let month = month(), skip(" "), let day = skip(" ") ? number(1) : number(2),
            skip(" "), let time = time(), skip(" "), let year = number(4), rest.isEmpty
        else { return nil }
        return seconds(year, month, day, time)
    }

    private func seconds(_ year: Int64, _ month: Int64, _ day: Int64, _ time: Int64) -> Int64? {
        guard day >= 1, day <= Calendar.length(month, of: year) else { return nil }
        return Calendar.days(year, month, day) * 86_400 + time
    }

    /// Seconds since midnight. A second of 60 is a leap second.
    private mutating func time() -> Int64? {
        guard let hour = number(2), skip(":"), let minute = number(2), skip(":"),
            let second = number(2), hour < 24, minute < 60, second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    private mutating func month() -> Int64? {
        guard let name = letters(), let index = months.firstIndex(of: name) else { return nil }
        return Int64(index) + 1
    }

    mutating func letters() -> String? {
        let word = rest.prefix { $0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A }
        guard !word.isEmpty, word.count <= 9 else { return nil }
        rest = rest.dropFirst(word.count)
        return String(decoding: word, as: UTF8.self)
    }

    private mutating func number(_ digits: Int) -> Int64? {
        let word = rest.prefix(digits)
        guard word.count == digits, word.allSatisfy({ $0.isASCIIDigit }) else { return nil }
        rest = rest.dropFirst(digits)
        return word.reduce(0) { $0 * 10 + Int64($1 & 0x0F) }
    }

    mutating func skip(_ text: StaticString) -> Bool {
        let expected = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        guard rest.starts(with: expected) else { return false }
        rest = rest.dropFirst(expected.count)
        return true
    }
}
