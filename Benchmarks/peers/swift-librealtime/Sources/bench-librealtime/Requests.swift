// Requests over HTTP, a number at a time, each after the response to the one before.
import Meter
import Realtime
import Synchronization

/// The requests that are still to be made, shared by the tasks.
private final class Left: Sendable {
    private let count: Atomic<Int>

    init(_ count: Int) { self.count = Atomic(count) }

    func take() -> Bool { count.subtract(1, ordering: .relaxed).newValue >= 0 }
}

func sendRequests(_ meter: Meter, parallel: Int) async throws {
    var options = REST.Options()
    options.maxPerHost = parallel
    let rest = try REST(options: options)
    let url = meter.task.url
    let left = Left(meter.task.count)
    meter.start()
    let answers = try await withThrowingTaskGroup(of: [(count: Int, last: UInt8)].self) { group in
        for _ in 0..<parallel {
            group.addTask {
                var sizes: [(count: Int, last: UInt8)] = []
                while left.take() {
                    let body = try await rest.get(url).body
                    sizes.append((body.count, body.last ?? 0))
                }
                return sizes
            }
        }
        return try await group.reduce(into: []) { $0 += $1 }
    }
    meter.stop()
    for answer in answers { _ = meter.message(answer.count, last: answer.last) }
}
