import CShims
import Glibc

// libcurl's callbacks for a transfer.
extension HTTPTransfer {
    struct Progress: Equatable {
        /// Bytes of the bodies; totals are 0 while unknown.
        var sent: UInt64 = 0
        var toSend: UInt64 = 0
        var received: UInt64 = 0
        var toReceive: UInt64 = 0
    }

    static let calls = CurlCalls(
        header: headerCame, body: bodyCame, bodyWanted: bodyWanted, progress: progressCame,
        log: logLineCame, socketWanted: socketWanted)

    /// Does not retain the transfer for each line: libcurl's multi handle retains its users.
    private static func with(
        _ user: UnsafeMutableRawPointer?, _ body: (HTTPTransfer) -> Int
    ) -> Int {
        guard let user,
            let worker = Unmanaged<CurlHandle>.fromOpaque(user)._withUnsafeGuaranteedRef({
                $0.worker
            })
        else { return 0 }
        return Unmanaged<HTTPTransfer>.fromOpaque(worker)._withUnsafeGuaranteedRef(body)
    }

    private static let headerCame: shim_curl_data_fn = { data, _, count, user in
        with(user) { me in me.take(header: UnsafeRawBufferPointer(start: data, count: count)) }
    }

    /// Handles a line of the head, or several lines that libcurl kept while this was paused.
    func take(header bytes: UnsafeRawBufferPointer) -> Int {
        var rest = bytes
        while let start = rest.baseAddress, let end = memchr(start, 0x0A, rest.count) {
            let length = UnsafeRawPointer(end) - start + 1
            guard take(line: UnsafeRawBufferPointer(rebasing: rest[..<length])) else { return 0 }
            rest = UnsafeRawBufferPointer(rebasing: rest[length...])
        }
        return rest.isEmpty || take(line: rest) ? bytes.count : 0
    }

    private static let logLineCame: shim_curl_debug_fn = { _, kind, text, count, user in
        guard kind == CURLINFO_TEXT else { return 0 }
        return Int32(
            with(user) { me in
                me.refusal.read(UnsafeRawBufferPointer(start: text, count: count))
                me.handle.setNotBegun(me.refusal.holds)
                return 0
            })
    }

    private static let socketWanted: shim_curl_wanted_fn = { user in
        _ = with(user) { me in
            me.wantSocket()
            return 0
        }
    }

    private static let bodyCame: shim_curl_data_fn = { data, _, count, user in
        with(user) { me in me.take(body: UnsafeRawBufferPointer(start: data, count: count)) }
    }

    private static let bodyWanted: shim_curl_data_fn = { data, _, capacity, user in
        with(user) { me in
            me.give(UnsafeMutableRawBufferPointer(start: data, count: capacity))
        }
    }

    private static let progressCame: shim_curl_progress_fn = {
        user, toReceive, received, toSend, sent in
        let progress = Progress(
            sent: UInt64(max(0, sent)), toSend: UInt64(max(0, toSend)),
            received: UInt64(max(0, received)), toReceive: UInt64(max(0, toReceive)))
        return Int32(
            with(user) { me in
                if me.reportsProgress { me.take(progress) }
                return !me.isConnected && me.tunnelAnswer.isTooLong() ? 1 : 0
            })
    }
}
