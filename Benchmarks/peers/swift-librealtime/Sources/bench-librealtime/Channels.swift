// Pusher events in a handler on the main actor, which is the default, in one on the loop's thread,
// or by `for await`.
import Meter
import Realtime
import Wire

private func connect(
    _ meter: Meter, handlersOn executor: HandlerExecutor = .main
) async throws -> Pusher {
    var options = PusherClientOptions(
        host: .host(meter.task.host), port: meter.task.port, useTLS: false)
    options.executor = executor
    let pusher = Pusher(key: String(meter.task.path.dropFirst("/app/".count)), options: options)
    try await pusher.connected()
    return pusher
}

/// - Returns: true for the last event.
private func count(_ event: PusherEvent, _ meter: Meter, readsJSON: Bool) -> Bool {
    if readsJSON {
        guard let quantity = event.json?["quantity"]?.integerValue else { fail("no quantity") }
        meter.checksum += Int(quantity)
    }
    meter.bytes += event.data?.utf8.count ?? 0
    meter.messages += 1
    return meter.messages == meter.task.count
}

/// Binds a handler that is not isolated, so that it runs where the options say.
nonisolated func handleEvents(
    _ meter: Meter, on executor: HandlerExecutor = .main, readsJSON: Bool = false
) async throws {
    let pusher = try await connect(meter, handlersOn: executor)
    let (done, finish) = AsyncStream<Void>.makeStream()
    meter.start()
    pusher.subscribe("chat").bind(eventName: "new-price") { (event: PusherEvent) in
        if count(event, meter, readsJSON: readsJSON) {
            meter.stop()
            finish.finish()
        }
    }
    for await _ in done {}
    pusher.disconnect()
}

@MainActor func iterateOverEvents(_ meter: Meter) async throws {
    let pusher = try await connect(meter)
    meter.start()
    for await event in pusher.subscribe("chat").events("new-price")
    where count(event, meter, readsJSON: false) {
        break
    }
    meter.stop()
    pusher.disconnect()
}
