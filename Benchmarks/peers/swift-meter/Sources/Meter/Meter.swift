// Shared by the Swift clients: the task, the counters, and the report. The same as
// `peers/c/meter.h`.
import Glibc

/// `client MODE URL COUNT [SIZE] [CA-FILE]`
public struct BenchTask: Sendable {
    public let mode: String
    public let url: String
    public let host: String
    public let port: Int
    public let path: String
    public let count: Int
    public let size: Int
    public let caFile: String?

    public init(_ arguments: [String]) {
        guard arguments.count >= 4, let count = Int(arguments[3]), count > 0 else {
            fail("usage: client MODE URL COUNT [SIZE] [CA-FILE]")
        }
        mode = arguments[1]
        url = arguments[2]
        self.count = count
        size = arguments.count > 4 ? Int(arguments[4]) ?? 0 : 0
        caFile = arguments.count > 5 ? arguments[5] : nil
        let parts = url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: true)
        let authority = parts.count > 1 ? parts[1].split(separator: ":") : []
        guard authority.count == 2, parts.count == 3, let port = Int(authority[1]) else {
            fail("the URL needs host, port and path")
        }
        host = String(authority[0])
        self.port = port
        path = "/" + parts[2]
    }

    /// The payload that clients send: bytes that the server knows.
    public var payload: [UInt8] { (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 3) } }
}

public func fail(_ message: String) -> Never {
    // `stderr` is a global variable, which Swift 6 does not allow reading.
    let line = Array((message + "\n").utf8)
    _ = write(2, line, line.count)
    exit(1)
}

public let notSupported: Int32 = 3

/// Counts messages and measures the time. Used by one thread at a time.
public final class Meter: @unchecked Sendable {
    public let task: BenchTask
    // Unchecked, so that counting costs as little as in C.
    @exclusivity(unchecked) public var messages = 0
    @exclusivity(unchecked) public var bytes = 0
    @exclusivity(unchecked) public var checksum = 0
    private var roundTrips: [UInt64] = []
    private var asked: UInt64 = 0
    private var cpu: (start: UInt64, end: UInt64) = (0, 0)
    private var wall: (start: UInt64, end: UInt64) = (0, 0)
    private var resident: (before: Int, after: Int)?
    private var isMeasured = false

    public init(_ task: BenchTask) {
        self.task = task
        roundTrips.reserveCapacity(task.mode == "echo" ? task.count : 0)
    }

    public func start() {
        wall.start = now()
        cpu.start = cpuTime()
    }

    public func stop() {
        cpu.end = cpuTime()
        wall.end = now()
        isMeasured = true
    }

    /// Counts one message.
    /// - Returns: true for the last one.
    @inline(__always)
    public func message(_ count: Int, last: UInt8) -> Bool {
        bytes += count
        checksum += Int(last)
        messages += 1
        return messages == task.count
    }

    /// Takes the server's report about the messages that were sent: `MESSAGES BYTES WRONG`.
    public func sent(_ text: String) {
        let numbers = text.split(separator: " ").compactMap { Int($0) }
        guard numbers.count == 3, numbers[2] == 0 else {
            fail("the server received other bytes than were sent")
        }
        messages = numbers[0]
        bytes = numbers[1]
    }

    public func ask() { asked = now() }

    /// - Returns: true for the last one.
    public func answer(_ count: Int, last: UInt8) -> Bool {
        roundTrips.append(now() - asked)
        guard count == task.size, last == UInt8(truncatingIfNeeded: (count - 1) &* 7 &+ 3) else {
            fail("the echo differs from what was sent")
        }
        return message(count, last: last)
    }

    public func idleBefore() {
        var files = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        getrlimit(resource, &files)
        files.rlim_cur = files.rlim_max
        setrlimit(resource, &files)
        resident = (residentBytes(), 0)
        start()
    }

    public func idleAfter() {
        stop()
        resident?.after = residentBytes()
    }

    /// Prints one line of JSON and ends the process.
    public func report() -> Never {
        guard isMeasured else { fail("the connection ended before the last message") }
        var fields = [
            "\"messages\": \(messages)", "\"bytes\": \(bytes)",
            "\"cpu_ns\": \(cpu.end - cpu.start)",
            "\"wall_ns\": \(wall.end - wall.start)", "\"peak_rss_kib\": \(peakResidentKiB())",
        ]
        if checksum != 0 { fields.append("\"checksum\": \(checksum)") }
        if !roundTrips.isEmpty {
            roundTrips.sort()
            fields.append("\"p50_ns\": \(roundTrips[roundTrips.count / 2])")
            fields.append("\"p99_ns\": \(roundTrips[roundTrips.count * 99 / 100])")
        }
        if let resident {
            let each = Double(resident.after - resident.before) / Double(task.count)
            fields.append("\"idle_bytes\": \(each)")
        }
        print("{\(fields.joined(separator: ", "))}")
        fflush(nil)
        _exit(0)
    }
}

private func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

private func cpuTime() -> UInt64 {
    var usage = rusage()
    getrusage(RUSAGE_SELF.rawValue, &usage)
    return [usage.ru_utime, usage.ru_stime].reduce(0) {
        $0 + UInt64($1.tv_sec) * 1_000_000_000 + UInt64($1.tv_usec) * 1000
    }
}

private func contents(_ path: String) -> String {
    guard let file = fopen(path, "r") else { fail("cannot read \(path)") }
    defer { fclose(file) }
    var buffer = [UInt8](repeating: 0, count: 8192)
    let size = fread(&buffer, 1, buffer.count, file)
    return String(decoding: buffer[..<size], as: UTF8.self)
}

private func residentBytes() -> Int {
    let fields = contents("/proc/self/statm").split(separator: " ")
    return fields.count > 1 ? (Int(fields[1]) ?? 0) * sysconf(Int32(_SC_PAGESIZE)) : 0
}

private func peakResidentKiB() -> Int {
    for line in contents("/proc/self/status").split(separator: "\n")
    where line.hasPrefix("VmHWM:") {
        return line.split(whereSeparator: { $0 == " " || $0 == "\t" }).compactMap { Int($0) }.first
            ?? 0
    }
    return 0
}
