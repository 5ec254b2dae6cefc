internal import Engine
import Synchronization

extension REST {
    /// Passes the pieces of a sequence to a request, one at a time. The next piece is requested
    /// when the last one has been sent, and may take any time.
    final class Upload: Sendable {
        private let pieces: Pieces

        init(_ sequence: any AsyncSequence<[UInt8], any Error> & Sendable, _ client: RESTClient) {
            let pieces = Pieces(client)
            self.pieces = pieces
            // The task does not retain the upload, whose deinit cancels it.
            pieces.begin(
                Task {
                    do {
                        for try await piece in sequence where !piece.isEmpty {
                            guard await pieces.put(piece) else { return }
                        }
                        pieces.end(failed: false)
                    } catch {
                        pieces.end(failed: true)
                    }
                })
        }

        deinit { pieces.cancel() }

        /// Sets the request's number, which `resume` needs.
        func set(number: UInt64) { pieces.set(number: number) }

        func next(_ space: UnsafeMutableRawBufferPointer) -> RESTBodyStep { pieces.next(space) }
    }

    private final class Pieces: Sendable {
        private struct State {
            var task: Task<Void, Never>?
            var number: UInt64?
            var piece: ArraySlice<UInt8> = []
            /// The task that put the piece, until the piece is taken.
            var waiting: CheckedContinuation<Bool, Never>?
            var isWanted = false
            var last: RESTBodyStep?
        }

        private let client: RESTClient
        private let state = Mutex(State())

        init(_ client: RESTClient) { self.client = client }

        func begin(_ task: Task<Void, Never>) { state.withLock { $0.task = task } }

        func set(number: UInt64) { state.withLock { $0.number = number } }

        /// Returns true when the piece was taken, false if it never will be.
        func put(_ piece: [UInt8]) async -> Bool {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    guard state.last == nil else { return true }
                    state.piece = piece[...]
                    state.waiting = continuation
                    return false
                }
                if isOver { continuation.resume(returning: false) } else { resume() }
            }
        }

        func end(failed: Bool) {
            state.withLock { $0.last = $0.last ?? (failed ? .fail : .end) }
            resume()
        }

        func cancel() {
            let (task, waiting) = state.withLock { state in
                state.last = .fail
                defer { state.waiting = nil }
                return (state.task, state.waiting)
            }
            task?.cancel()
            waiting?.resume(returning: false)
        }

        func next(_ space: UnsafeMutableRawBufferPointer) -> RESTBodyStep {
            let (step, taken) = state.withLock { state in
                state.isWanted = state.piece.isEmpty && state.last == nil
                guard !state.piece.isEmpty else {
                    return (state.last ?? .wait, nil as CheckedContinuation<Bool, Never>?)
                }
                let count = min(space.count, state.piece.count)
                space.copyBytes(from: state.piece.prefix(count))
                state.piece = state.piece.dropFirst(count)
                guard state.piece.isEmpty else { return (.bytes(count), nil) }
                defer { state.waiting = nil }
                return (.bytes(count), state.waiting)
            }
            taken?.resume(returning: true)
            return step
        }

        private func resume() {
            let number = state.withLock { state in
                defer { state.isWanted = false }
                return state.isWanted ? state.number : nil
            }
            if let number { try? client.resumeBody(number) }
        }
    }
}
