import Testing
import Wire

@Suite struct ByteTableTests {
    @Test func namesKeepTheirOrder() {
        var table = ByteTable<Int>()
        for (value, name) in ["b", "a", "", "c"].enumerated() { table[name] = value }
        #expect(table.values == [0, 1, 2, 3])
        #expect(table[""] == 2)
        table["a"] = 7
        #expect(table.values == [0, 7, 2, 3])
        table["b"] = nil
        table["x"] = nil
        #expect(table.values == [7, 2, 3])
        table["b"] = 9
        #expect(table.values == [7, 2, 3, 9])
        #expect(table.count == 4)
        table.removeAll()
        #expect(table.isEmpty && table.values.isEmpty && table["a"] == nil)
    }

    @Test func namesAreComparedByteForByte() {
        var table = ByteTable<Int>()
        table["\u{E9}"] = 1
        table["e\u{301}"] = 2
        table["a\0b"] = 3
        table["a\0c"] = 4
        #expect(table.values == [1, 2, 3, 4])
        #expect(table["a"] == nil)
    }

    /// Random calls, compared with an array that is searched.
    @Test(arguments: 0..<20) func itAgreesWithASearchedArray(seed: UInt64) {
        var state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 1
        func random(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        var table = ByteTable<Int>()
        var naive: [(name: String, value: Int)] = []
        for step in 0..<4000 {
            let name = String(repeating: "x", count: random(20)) + String(random(40))
            let position = naive.firstIndex { $0.name == name }
            #expect(table[name] == position.map { naive[$0].value })
            switch random(3) {
            case 0:
                table[name] = nil
                if let position { naive.remove(at: position) }
            default:
                // Removes more than it adds, for a while.
                guard step % 1000 < 600 else { continue }
                table[name] = step
                if let position {
                    naive[position].value = step
                } else {
                    naive.append((name, step))
                }
            }
            #expect(table.count == naive.count)
        }
        #expect(table.values == naive.map { $0.value })
    }

    @Test func aCopyIsIndependent() {
        var table = ByteTable<Int>()
        table["a"] = 1
        let copy = table
        table["a"] = 2
        table["b"] = 3
        #expect(copy["a"] == 1 && copy["b"] == nil)
    }
}
