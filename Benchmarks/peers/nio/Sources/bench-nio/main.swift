// swift-nio's WebSocket client: a channel handler on one event loop.
import Glibc
import Meter
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket

let meter = Meter(BenchTask(CommandLine.arguments))
let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

/// Sends the upgrade request.
final class RequestSender: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    func channelActive(context: ChannelHandlerContext) {
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: meter.task.path)
        head.headers.add(name: "Host", value: "\(meter.task.host):\(meter.task.port)")
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}

/// Connects, calls `made` with the upgraded channel.
func dial(_ made: @escaping @Sendable (Channel) -> ChannelHandler & Sendable) throws -> Channel {
    try ClientBootstrap(group: group)
        .channelOption(.tcpOption(.tcp_nodelay), value: 1)
        .channelInitializer { channel in
            let upgrader = NIOWebSocketClientUpgrader(maxFrameSize: 1 << 24) { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(made(channel))
                }
            }
            let sender = NIOLoopBound(RequestSender(), eventLoop: channel.eventLoop)
            return channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHTTPClientHandlers(
                    withClientUpgrade: (
                        upgraders: [upgrader],
                        completionHandler: { context in
                            context.pipeline.syncOperations.removeHandler(
                                sender.value, promise: nil)
                        }
                    ))
                try channel.pipeline.syncOperations.addHandler(sender.value)
            }
        }
        .connect(host: "127.0.0.1", port: meter.task.port)
        .wait()
}

// TLS would need swift-nio-ssl, another package.
if meter.task.url.hasPrefix("wss:") { exit(notSupported) }

switch meter.task.mode {
case "receive", "send", "echo":
    try dial { _ in Client() }.closeFuture.wait()
case "connect":
    meter.start()
    for _ in 0..<meter.task.count {
        try dial { _ in Closer() }.closeFuture.wait()
    }
    meter.stop()
case "idle":
    for count in 0...meter.task.count {
        if count == 1 { meter.idleBefore() }
        let opened = group.next().makePromise(of: Void.self)
        _ = try dial { _ in Quiet(opened) }
        try opened.futureResult.wait()
        meter.messages = count
    }
    meter.idleAfter()
default:
    exit(notSupported)
}
meter.report()
