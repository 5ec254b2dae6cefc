import Testing

@testable import Wire

@Suite struct HTTPDateTests {
    /// RFC 9110 §5.6.7, and both ends of each form's range.
    @Test(
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
            ("Thu, 29 Feb 2024 23:59:60 GMT", 1_709_251_200), ("Thu Jan 01 00:00:00 1970", 0),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
            ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200),
            ("Sat, 21 Nov 2026 12:00:00 GMT", 1_795_262_400),
            // The day's name is not checked: the date counts.
            ("Mon, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ] as [(String, Int64)])
    func allThreeFormsAreRead(text: String, seconds: Int64) {
        #expect(parseHTTPDate(text) == seconds)
    }

    @Test(arguments: [
        "", "0", "784111777", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 gmt",
        "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nov 1994 08:49:37 GMT ", "sun, 06 Nov 1994",
        " Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 29 Feb 2023 08:49:37 GMT", "Sun, 29 Feb 1900 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT", "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun Nov 6 08:49:37 1994", "Sun Nov  6 08:49:37 94",
        "Sun Nov  6 08:49:37 1994 GMT", "Son, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov +994 08:49:37 GMT", "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, ０６ Nov 1994 08:49:37 GMT", "Sun,\t06 Nov 1994 08:49:37 GMT",
        "2026-11-21T12:00:00Z",
    ])
    func otherTextsAreNotDates(text: String) { #expect(parseHTTPDate(text) == nil) }

    /// RFC 9110: a year with two digits is never more than 50 years ahead.
    @Test func twoDigitYearsAreTheNearest() throws {
        let now = try #require(parseHTTPDate("Sat, 21 Nov 2026 12:00:00 GMT"))
        for (short, year) in [
            ("76", "2076"), ("77", "1977"), ("99", "1999"), ("00", "2000"), ("26", "2026"),
        ] {
            let read = parseHTTPDate("Monday, 01-Jun-\(short) 00:00:00 GMT", now: now)
            #expect(read == parseHTTPDate("Mon, 01 Jun \(year) 00:00:00 GMT"))
        }
        let later = try #require(parseHTTPDate("Mon, 01 Jan 2080 00:00:00 GMT"))
        #expect(
            parseHTTPDate("Monday, 01-Jun-10 00:00:00 GMT", now: later)
                == parseHTTPDate("Mon, 01 Jun 2110 00:00:00 GMT"))
        for now in [Int64.min, .max] {
            #expect(parseHTTPDate("Monday, 01-Jun-10 00:00:00 GMT", now: now) != nil)
        }
    }

    @Test func datesArePrintedInTheFormOfServers() {
        #expect(formatHTTPDate(784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(formatHTTPDate(0) == "Thu, 01 Jan 1970 00:00:00 GMT")
        #expect(formatHTTPDate(-1) == "Wed, 31 Dec 1969 23:59:59 GMT")
        #expect(formatHTTPDate(1_795_262_400) == "Sat, 21 Nov 2026 12:00:00 GMT")
        #expect(formatHTTPDate(.max) == "Fri, 31 Dec 9999 23:59:59 GMT")
        #expect(formatHTTPDate(.min) == "Sat, 01 Jan 0000 00:00:00 GMT")
    }

    @Test func printedDatesAreReadAgain() {
        var random = SeededGenerator(seed: 1994)
        for _ in 0..<5000 {
            let seconds = Int64.random(in: -62_167_219_200...253_402_300_799, using: &random)
            #expect(parseHTTPDate(formatHTTPDate(seconds)) == seconds)
        }
    }
}

@Suite struct RetryAfterTests {
    private let now: Int64 = 784_111_777

    private func wait(_ fields: [(String, String)]) -> Duration? {
        let head = ResponseHead(
            status: 503, fields: fields.map { HeaderField(name: $0.0, value: $0.1) })
        let wait = retryTime(of: head, wallClock: now)
        #expect(retryTime(of: HTTPResponse(head, body: []), wallClock: now) == wait)
        return wait
    }

    @Test func digitsAreSeconds() {
        #expect(wait([("retry-after", "120")]) == .seconds(120))
        #expect(wait([("Retry-After", "0")]) == .zero)
        #expect(wait([("Retry-After", " 0007 ")]) == .seconds(7))
        let years = Duration.seconds(100 * 366 * 86_400)
        #expect(wait([("Retry-After", String(repeating: "9", count: 50))]) == years)
    }

    @Test func aDateIsRelativeToTheResponsesDate() {
        let date = "Sun, 06 Nov 1994 08:50:37 GMT"
        #expect(wait([("Retry-After", date)]) == .seconds(60))
        // The clocks differ by two hours.
        let skewed = ("Date", "Sun, 06 Nov 1994 06:49:37 GMT")
        #expect(wait([skewed, ("Retry-After", "Sun, 06 Nov 1994 06:50:37 GMT")]) == .seconds(60))
        #expect(wait([("Date", "now"), ("Retry-After", date)]) == .seconds(60))
        #expect(wait([("Retry-After", "Sunday, 06-Nov-94 08:50:37 GMT")]) == .seconds(60))
        #expect(wait([("Retry-After", "Sun Nov  6 08:50:37 1994")]) == .seconds(60))
    }

    @Test func aDateThatHasPassedIsNow() {
        #expect(wait([("Retry-After", "Sun, 06 Nov 1994 08:49:36 GMT")]) == .zero)
        let head = ResponseHead(
            status: 503,
            fields: [HeaderField(name: "Retry-After", value: "Sun Nov  6 08:50:37 1994")])
        for clock in [Int64.min, .max] {
            #expect(retryTime(of: head, wallClock: clock).map { $0 >= .zero } == true)
        }
    }

    @Test(arguments: ["", "-1", "+5", "1.5", "soon", "1 s", "٣"]) func anythingElseIsIgnored(
        _ value: String
    ) {
        #expect(wait([("Retry-After", value)]) == nil)
        #expect(wait([]) == nil)
    }
}
