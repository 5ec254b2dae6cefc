import Session
import Synchronization
import Wire

/// A source whose id is written to a file. The loop's owner only.
protocol EventIDSource: AnyObject {
    /// The key of the source's ids in the file.
    var idKey: String { get }
    var unstored: UnstoredID { get set }
    var idToWrite: String { get }
    /// - Parameter id: nil if it could not be written, and nobody tries again.
    func wrote(_ id: String?)
    /// An id is lost, because it could not be written.
    func lost(because error: RealtimeError)
    /// True while the handlers of an event run.
    var isReading: Bool { get }
    /// The id could not be written.
    func idFailed(_ error: RealtimeError)
}

/// The last id of an event source, as long as it has to be stored.
struct UnstoredID {
    /// The id that the writer has yet to write.
    var id: String?
    /// The id that the `storeID` handler has yet to get.
    var unreported: String?
    /// The earliest time for that: once a second (C14).
    var due = Instant(nanoseconds: 0)
    /// True once it was reported that the file cannot be used.
    var isBroken = false
}

/// Writes the ids of all event sources on a loop that share a file (C14). It writes them together,
/// at most once a second, and limits the wait for the file's lock, because the loop stands still
/// meanwhile. The loop's owner only.
final class EventIDWriter: TimerTarget, LoopResident {
    let store: KeyedStore
    /// Objects that retain a writer also retain the loop.
    private unowned(unsafe) let loop: Loop
    private let timer = LoopTimer()
    /// Sources with an id that has yet to be written.
    private var waiting: [any EventIDSource] = []
    /// The earliest time of the next write.
    private var due = Instant(nanoseconds: 0)
    /// How long sources that end may wait for the lock, because they cannot try again. All that end
    /// within a second share it.
    private var lastLockTimeout = EventIDWriter.longLockTimeout
    private var lastLockTimeoutBegan = Instant(nanoseconds: 0)

    private static let interval = Duration.seconds(1)
    /// Short, because a turn of the loop waits, and the ids can be written a second later.
    private static let lockTimeout = Duration.milliseconds(40)
    static let longLockTimeout = Duration.milliseconds(500)

    /// The loop's writer for this file. Paths are compared as they were given.
    static func shared(_ path: String, on loop: Loop) -> EventIDWriter {
        let writers = loop.local(Writers.self) { Writers() }
        let key = Array(path.utf8)
        if let writer = writers.byPath[key] { return writer }
        writers.forgetUnused()
        let writer = EventIDWriter(path, on: loop)
        writers.byPath[key] = writer
        return writer
    }

    /// The writers of a loop. Unchecked because only the loop's owner uses it.
    private final class Writers: LoopLocal, @unchecked Sendable {
        var byPath: [[UInt8]: EventIDWriter] = [:]

        /// Drops the writers whose sources are gone.
        func forgetUnused() {
            for path in Array(byPath.keys) where isKnownUniquelyReferenced(&byPath[path]) {
                byPath[path] = nil
            }
        }
    }

    private init(_ path: String, on loop: Loop) {
        store = KeyedStore(path: path, format: .eventIDs)
        self.loop = loop
    }

    /// Call when the source has an id to write and had none before.
    func add(_ source: any EventIDSource) {
        waiting.append(source)
        guard !loop.isClosed.load(ordering: .acquiring) else { return finish(source) }
        if waiting.count == 1 {
            loop.addResident(self)
            arm()
        }
    }

    /// The source ends: this is the last chance to write its id.
    func finish(_ source: any EventIDSource) {
        guard source.unstored.id != nil else { return }
        var failed: [(any EventIDSource, RealtimeError)] = []
        do throws(RealtimeError) {
            failed = try writeLast(of: source)
        } catch {
            Log.write(.warning, error.message)
            source.wrote(nil)
            source.lost(because: error)
            waiting.removeAll { $0 === source }
        }
        arm()
        // Reported in the next turn, because this may run inside a call.
        if !failed.isEmpty { loop.enqueue { EventIDWriter.report(failed) } }
    }

    func timeReached(_ now: Instant) {
        var failed: [(any EventIDSource, RealtimeError)] = []
        do throws(RealtimeError) {
            var lockTimeout = EventIDWriter.lockTimeout
            failed = try write(&lockTimeout)
        } catch {
            due = now + EventIDWriter.interval
            Log.write(.warning, error.message)
            failed = waiting.map { ($0, error) }
        }
        arm()
        // Last, because the handlers may do anything.
        EventIDWriter.report(failed)
    }

    func loopClosed() {
        do throws(RealtimeError) {
            if !waiting.isEmpty { _ = try writeLast() }
        } catch {
            Log.write(.warning, error.message)
        }
        for source in waiting { source.wrote(nil) }
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
        if now >= lastLockTimeoutBegan + EventIDWriter.interval {
            (lastLockTimeout, lastLockTimeoutBegan) = (EventIDWriter.longLockTimeout, now)
        }
        var lockTimeout = lastLockTimeout
        defer { lastLockTimeout = lockTimeout }
        return try write(&lockTimeout, of: ending)
    }

    /// - Returns: the sources whose ids did not fit, with the error.
    private func write(
        _ lockTimeout: inout Duration, of ending: (any EventIDSource)? = nil
    ) throws(RealtimeError) -> [(any EventIDSource, RealtimeError)] {
        var written: [any EventIDSource] = []
        var texts: [(key: String, text: String)] = []
        // The handler of another source's event may have ended this source; that event's id must
        // wait.
        func isReady(_ source: any EventIDSource) -> Bool {
            source === ending || !source.isReading
        }
        let refused = try store.save(&lockTimeout) {
            written = waiting.filter(isReady)
            texts = written.map { (key: $0.idKey, text: $0.idToWrite) }
            return texts
        }
        due = Loop.now() + EventIDWriter.interval
        waiting.removeAll(where: isReady)
        for (source, text) in zip(written, texts) { source.wrote(text.text) }
        for index in refused { written[index].lost(because: store.isFull) }
        for index in written.indices where !refused.contains(index) {
            written[index].unstored.isBroken = false
        }
        return refused.map { (written[$0], store.isFull) }
    }

    private static func report(_ failed: [(any EventIDSource, RealtimeError)]) {
        for (source, error) in failed { source.idFailed(error) }
    }
}
