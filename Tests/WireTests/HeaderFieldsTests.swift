import Testing

@testable import Wire

@Suite struct HeaderFieldsTests {
    /// Short lists are searched, long ones have an index: both behave the same.
    @Test(arguments: [1, 16, 17, 40])
    func settingAHeaderReplacesAllOfThatName(count: Int) {
        var fields = HeaderFields()
        for number in 0..<count {
            fields.append(HeaderField(name: "X-\(number)", value: "a"))
        }
        fields.append(HeaderField(name: "x-0", value: "b"))
        #expect(fields.all.count == count + 1)
        fields.set("X-0", "c")
        #expect(fields.all.count == count && fields.all.last?.value == "c")
        #expect(fields.has("x-0") && !fields.has("y-0"))
        fields.set("x-0", nil)
        #expect(fields.all.count == count - 1 && !fields.has("X-0"))
        fields.set("Y-0", "d")
        #expect(fields.has("y-0") && fields == HeaderFields(fields.all))
        for field in fields.all { fields.set(field.name, nil) }
        #expect(fields.all.isEmpty && fields == HeaderFields())
    }

    /// Its small letter is that of the ASCII letter.
    @Test(arguments: [1, 40])
    func theKelvinSignIsNotALetterOfNames(count: Int) {
        let fields = HeaderFields((0..<count).map { HeaderField(name: "K-\($0)", value: "a") })
        #expect(fields.has("k-0") && !fields.has("\u{212A}-0"))
    }
}
