import Foundation
import Realtime
import Testing

@Suite(.timeLimit(.minutes(5))) struct NetworkTests {
    /// The kernel has the options: the test finds a socket with an interval that no other test
    /// uses.
    @Test func theKernelUsesTheKeepAliveInterval() async throws {
        var options = WebSocket.Options()
        options.network.tcpKeepAlive = .seconds(1234)
        let socket = try await WebSocket.connect(EchoServer.shared.url("echo"), options: options)
        #expect(try probeTimes().contains([1234, 1234]))
        try await socket.close()
    }

    /// The seconds until the first probe, and between probes, of each TCP socket of this process.
    private func probeTimes() throws -> [[Int32]] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap(Int32.init)
            .map { descriptor in
                [TCP_KEEPIDLE, TCP_KEEPINTVL].map { option in
                    var value: Int32 = 0
                    var size = socklen_t(MemoryLayout<Int32>.size)
                    getsockopt(descriptor, Int32(IPPROTO_TCP), option, &value, &size)
                    return value
                }
            }
    }
}
