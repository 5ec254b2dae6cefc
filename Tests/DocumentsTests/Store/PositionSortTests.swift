import Testing

@testable import Documents

struct PositionSortTests {
    @Test(arguments: [0, 1, 2, 255, 256, 257, 2_000], [1, 7, 100, Int.max])
    func sorts(count: Int, steps: Int) {
        var random = SeededNumbers(seed: UInt64(count))
        let values = (0..<count).map { _ in Int.random(in: 0..<count, using: &random) }
        let costly = values.map { $0 % 3 }
        for weights in [nil, costly] {
            var sort = PositionSort(count: count, weights: weights)
            var calls = 0
            while true {
                var budget = StepBudget(steps)
                calls += 1
                let isDone = sort.run(&budget) {
                    (values[$0], $0) < (values[$1], $1)
                }
                if isDone { break }
            }
            let expected = values.indices.sorted { (values[$0], $0) < (values[$1], $1) }
            #expect(sort.positions == expected)
            if steps < count, count > 256 { #expect(calls > 1) }
        }
    }
}
