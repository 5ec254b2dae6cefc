import Session
import Synchronization
import Wire

/// Whose id is written. The loop's owner only.
protocol EventIDSource: AnyObject {
    /// The key of its ids.
    var idKey: String { get }
    var unstored: UnstoredID { get set }
    /// Inside the handlers of an event.
    var isReading: Bool { get }
    /// The id could not be written.
    func idFailed(_ error: RealtimeError)
}

/// The id of an event source that is to be stored.
struct UnstoredID {
    /// Its writer waits to write it.
    var id: String?
    /// The handler has not heard of it.
    var untold: String?
    /// When it may: once a second (C14).
    var due = Instant(nanoseconds: 0)
    /// It was told that the file cannot be used.
    var isBroken = false
}

/// Writes the ids of all event sources on a loop that keep them in one file (C14): together, at
/// most once a second, and with one patience for others who have the file's lock, since the loop
/// stands still meanwhile. The loop's owner only.
final class EventIDWriter: TimerTarget, LoopResident {
    let store: EventIDStore
    /// Those who hold a writer hold the loop, too.
    private unowned(unsafe) let loop: Loop
    private let timer = LoopTimer()
    /// Those with an id that is to be written.
    private var waiting: [any EventIDSource] = []
    /// When that may be.
    private var due = Instant(nanoseconds: 0)
    /// For those who end, as they cannot try again: shared by all who do within a second.
    private var lastPatience = EventIDWriter.longPatience
    private var lastPatienceBegan = Instant(nanoseconds: 0)

    private static let interval = Duration.seconds(1)
    /// Short, because a turn of the loop waits and the ids can be written a second later.
    private static let patience = Duration.milliseconds(40)
    static let longPatience = Duration.milliseconds(500)

    /// The loop's for this file, as its path was given.
    static func shared(_ path: String, on loop: Loop) -> EventIDWriter {
        let writers = loop.local(Writers.self) { Writers() }
        let key = Array(path.utf8)
        if let writer = writers.byPath[key] { return writer }
        writers.forgetUnused()
        let writer = EventIDWriter(path, on: loop)
        writers.byPath[key] = writer
        return writer
    }

    /// Those of a loop. Unchecked because the loop's owner alone uses it.
    private final class Writers: LoopLocal, @unchecked Sendable {
        var byPath: [[UInt8]: EventIDWriter] = [:]

        /// Forgets those whose sources are gone.
        func forgetUnused() {
            for path in Array(byPath.keys) where isKnownUniquelyReferenced(&byPath[path]) {
                byPath[path] = nil
            }
        }
    }

    private init(_ path: String, on loop: Loop) {
        store = EventIDStore(path: path)
        self.loop = loop
    }

    /// The source has an id now, and had none.
    func add(_ source: any EventIDSource) {
        waiting.append(source)
        guard !loop.isClosed.load(ordering: .acquiring) else { return finish(source) }
        if waiting.count == 1 {
            loop.addResident(self)
            arm()
        }
    }

    /// The source ends: its id is written now or never.
    func finish(_ source: any EventIDSource) {
        guard source.unstored.id != nil else { return }
        var failed: [(any EventIDSource, RealtimeError)] = []
        do throws(RealtimeError) {
            failed = try writeLast(of: source)
        } catch {
            Log.write(.warning, error.message)
            source.unstored.id = nil
            waiting.removeAll { $0 === source }
        }
        arm()
        // In the next turn: this may be inside a call.
        if !failed.isEmpty { loop.enqueue { EventIDWriter.tell(failed) } }
    }

    func timeReached(_ now: Instant) {
        var failed: [(any EventIDSource, RealtimeError)] = []
        do throws(RealtimeError) {
            var patience = EventIDWriter.patience
            failed = try write(&patience)
        } catch {
            due = now + EventIDWriter.interval
            Log.write(.warning, error.message)
            failed = waiting.map { ($0, error) }
        }
        arm()
        // Last, as they may do anything.
        EventIDWriter.tell(failed)
    }

    func loopClosed() {
        do throws(RealtimeError) {
            if !waiting.isEmpty { _ = try writeLast() }
        } catch {
            Log.write(.warning, error.message)
        }
        for source in waiting { source.unstored.id = nil }
        waiting = []
    }

    private func arm() {
        if waiting.isEmpty {
            loop.disarm(timer)
            loop.removeResident(self)
        } else {
            loop.arm(timer, self, at: due)
        }
    }

    private func writeLast(
        of ending: (any EventIDSource)? = nil
    ) throws(RealtimeError) -> [(any EventIDSource, RealtimeError)] {
        let now = Loop.now()
        if now >= lastPatienceBegan + EventIDWriter.interval {
            (lastPatience, lastPatienceBegan) = (EventIDWriter.longPatience, now)
        }
        var patience = lastPatience
        defer { lastPatience = patience }
        return try write(&patience, of: ending)
    }

    /// - Returns: those whose ids there is no room for.
    private func write(
        _ patience: inout Duration, of ending: (any EventIDSource)? = nil
    ) throws(RealtimeError) -> [(any EventIDSource, RealtimeError)] {
        var written: [any EventIDSource] = []
        // Another's event whose handler ends this one is not done with.
        func isReady(_ source: any EventIDSource) -> Bool {
            source === ending || !source.isReading
        }
        let refused = try store.save(&patience) {
            written = waiting.filter(isReady)
            return written.map { (key: $0.idKey, id: $0.unstored.id ?? "") }
        }
        due = Loop.now() + EventIDWriter.interval
        waiting.removeAll(where: isReady)
        for source in written { source.unstored.id = nil }
        for index in written.indices where !refused.contains(index) {
            written[index].unstored.isBroken = false
        }
        return refused.map { (written[$0], store.isFull) }
    }

    private static func tell(_ failed: [(any EventIDSource, RealtimeError)]) {
        for (source, error) in failed { source.idFailed(error) }
    }
}
