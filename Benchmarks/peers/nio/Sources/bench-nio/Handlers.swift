import Meter
import NIOCore
import NIOWebSocket

/// Floods, receives or echoes until the last message, then reports.
final class Client: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private var queued = 0
    private var payload = ByteBuffer()

    func handlerAdded(context: ChannelHandlerContext) {
        payload = ByteBuffer(bytes: meter.task.payload)
        meter.start()
        switch meter.task.mode {
        case "receive": write(context, .text, ByteBuffer(string: "go"))
        case "echo":
            meter.ask()
            write(context, .binary, payload)
        default: sendMore(context)
        }
        context.flush()
    }

    private func write(
        _ context: ChannelHandlerContext, _ opcode: WebSocketOpcode, _ data: ByteBuffer
    ) {
        let frame = WebSocketFrame(
            fin: true, opcode: opcode, maskKey: .random(), data: data)
        context.write(wrapOutboundOut(frame), promise: nil)
    }

    /// Writes until the high-water mark, then flushes once.
    private func sendMore(_ context: ChannelHandlerContext) {
        guard meter.task.mode == "send" else { return }
        while queued < meter.task.count {
            while queued < meter.task.count, context.channel.isWritable {
                write(context, .binary, payload)
                queued += 1
            }
            context.flush()
            if !context.channel.isWritable { return }
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { sendMore(context) }
        context.fireChannelWritabilityChanged()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        switch (meter.task.mode, frame.opcode) {
        case ("send", .text):
            meter.stop()
            meter.sent(String(buffer: frame.data))
            meter.report()
        case ("echo", .binary):
            if answer(frame.data) { return finish() }
            meter.ask()
            write(context, .binary, payload)
            context.flush()
        case ("receive", .text):
            // Creating a string validates the bytes.
            let text = String(buffer: frame.data)
            if meter.message(text.utf8.count, last: text.utf8.last ?? 0) { finish() }
        case ("receive", .binary):
            let bytes = frame.data.readableBytesView
            if meter.message(bytes.count, last: bytes.last ?? 0) { finish() }
        default: break
        }
    }

    private func answer(_ data: ByteBuffer) -> Bool {
        let bytes = data.readableBytesView
        return meter.answer(bytes.count, last: bytes.last ?? 0)
    }

    private func finish() {
        meter.stop()
        meter.report()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { fail("\(error)") }
}

/// Closes normally as soon as it is open.
final class Closer: ChannelInboundHandler, Sendable {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    func handlerAdded(context: ChannelHandlerContext) {
        var code = ByteBuffer()
        code.write(webSocketErrorCode: .normalClosure)
        let frame = WebSocketFrame(
            fin: true, opcode: .connectionClose, maskKey: .random(), data: code)
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard unwrapInboundIn(data).opcode == .connectionClose else { return }
        meter.messages += 1
        context.close(promise: nil)
    }
}

/// Reports that it is open, then only waits.
final class Quiet: ChannelInboundHandler, Sendable {
    typealias InboundIn = WebSocketFrame

    private let opened: EventLoopPromise<Void>

    init(_ opened: EventLoopPromise<Void>) { self.opened = opened }

    func handlerAdded(context: ChannelHandlerContext) { opened.succeed() }
}
