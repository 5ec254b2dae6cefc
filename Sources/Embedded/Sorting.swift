// Replaces the standard library's sorting by a closure, which the compiler writes out for every
// type of element, five kilobytes each time. Here all types share the sorting of positions. Where
// much is sorted, elements should be positions already: that is as quick as before.

extension Sequence {
    func sorted(by precedes: (Element, Element) -> Bool) -> [Element] {
        let elements = Array(self)
        guard elements.count > 1 else { return elements }
        return elements.indices.sorted { precedes(elements[$0], elements[$1]) }
            .map { elements[$0] }
    }
}

extension Sequence where Element == Int {
    func sorted(by precedes: (Int, Int) -> Bool) -> [Int] {
        var numbers = ContiguousArray(self)
        sortNumbers(&numbers, by: precedes)
        return Array(numbers)
    }
}

extension Array {
    mutating func sort(by precedes: (Element, Element) -> Bool) { self = sorted(by: precedes) }
}

@inline(never)
private func sortNumbers(_ numbers: inout ContiguousArray<Int>, by precedes: (Int, Int) -> Bool) {
    numbers.sort(by: precedes)
}
