import Realtime
import Synchronization

/// Prints what happens on a Pusher connection. Everything is written on the loop's thread, so the
/// output has the order of the events.
final class PusherView: Sendable {
    private struct State {
        /// Whether it was ever connected.
        var wasConnected = false
        /// The channels that have not failed, and those to which the event has to be sent.
        var channels: Set<String>
        var untriggered: Set<String>
    }

    private let output: Console
    private let completion: Completion
    private let left: Countdown
    private let endsWhenSent: Bool
    private let channels: [String]
    /// As bytes, because Swift considers canonically equivalent strings equal.
    private let names: Set<[UInt8]>
    private let trigger: (name: String, data: JSONValue)?
    private let state: Mutex<State>

    init(
        _ console: Console, _ completion: Completion, channels: [String], events: [String],
        count: Int?, trigger: (name: String, data: JSONValue)?
    ) {
        output = console
        self.completion = completion
        self.channels = channels
        self.trigger = trigger
        names = Set(events.map { Array($0.utf8) })
        endsWhenSent = count == 0
        left = Countdown(count == 0 ? nil : count)
        state = Mutex(State(channels: Set(channels), untriggered: Set(channels)))
    }

    /// Nil after the end.
    private var console: Console? { completion.isOver ? nil : output }

    /// Connects, unless there is nothing to connect for.
    func connect(_ pusher: Pusher) {
        if !completion.isOver { pusher.connect() }
    }

    /// Prepares the channels.
    func subscribe(_ pusher: Pusher) {
        pusher.onStateChange { [weak pusher] change in
            if let pusher { self.show(change, pusher) }
        }
        pusher.onError { error in self.show(error) }
        pusher.onSubscribed { [weak pusher] channel in
            if let pusher { self.subscribed(channel, pusher) }
        }
        pusher.onSubscriptionFailed { [weak pusher] channel, failure in
            if let pusher { self.failed(channel, failure, pusher) }
        }
        pusher.onDecryptionFailed { channel, event, _ in
            self.console?.note(
                "\(channel.name): the event \(event) cannot be decrypted",
                JSONLine("undecryptable").with("channel", channel.name).with("name", event))
        }
        pusher.bind { [weak pusher] (event: PusherEvent) in
            if let pusher { self.show(event, pusher) }
        }
        for channel in channels { pusher.subscribe(channel) }
    }

    private func show(_ event: PusherEvent, _ pusher: Pusher) {
        guard !left.isOver, let channel = event.channelName else { return }
        // These are reported otherwise.
        let isReported =
            ["pusher:subscription_succeeded", "pusher:subscription_error", "pusher:error"]
            .contains(event.eventName)
        guard !isReported, names.isEmpty || names.contains(Array(event.eventName.utf8)) else {
            return
        }
        let line = [channel, event.eventName, event.data].compactMap(\.self)
        console?.emit(
            line.joined(separator: " "),
            JSONLine("message").with("channel", channel).with("name", event.eventName)
                .with("user_id", event.userId).with("data", event.data))
        if left.countsDown() { pusher.disconnect() }
    }

    private func show(_ change: Pusher.StateChange, _ pusher: Pusher) {
        let wasConnected = state.withLock { state in
            if change.new == .connected { state.wasConnected = true }
            return state.wasConnected
        }
        let isEnd = change.new == .disconnected
        // Without a delay it waits for the network.
        if change.new == .reconnecting, change.retryIn != nil, !wasConnected {
            completion.end(change.error)
            return pusher.disconnect()
        }
        // The end is reported with its cause.
        if !isEnd || change.error == nil { note(change, pusher) }
        if isEnd { end(change) }
    }

    private func note(_ change: Pusher.StateChange, _ pusher: Pusher) {
        let connection = pusher.connection
        let text =
            switch change.new {
            case .connecting: "connecting to \(connection.url)"
            case .connected: "connected, socket id \(connection.socketId ?? "")"
            case .disconnecting: "disconnecting"
            case .disconnected: "disconnected"
            case .reconnecting:
                "\(change.error?.message ?? "the connection was lost");"
                    + " trying again \(Console.when(change.retryIn))"
            }
        console?.note(
            text,
            JSONLine("state").with("old", change.old.stringValue())
                .with("new", change.new.stringValue())
                .with("socket_id", change.new == .connected ? connection.socketId : nil)
                .with("code", change.error.map { "\($0.code)" })
                .with(message: change.error?.message).with("close_code", change.closeCode)
                .with("delay_ms", change.new == .reconnecting ? change.retryIn : nil))
    }

    private func end(_ change: Pusher.StateChange) {
        guard let error = change.error else { return completion.end() }
        guard change.closeCode != nil else { return completion.end(error) }
        _ = console?.fail(error)
        completion.end(ExitStatus.closedWithError)
    }

    private func show(_ error: PusherError) {
        console?.note(
            "the server reports: \(error)",
            JSONLine("server_error").with("code", error.code).with("message", error.message)
                .with("channel", error.channelName))
    }

    private func subscribed(_ channel: PusherChannel, _ pusher: Pusher) {
        let presence = channel as? PusherPresenceChannel
        let members = presence.map { channel in channel.members.map(\.userId) }
        let others = members.map { ", members: \($0.joined(separator: ", "))" }
        console?.note(
            "subscribed to \(channel.name)\(others ?? "")",
            JSONLine("subscribed").with("channel", channel.name)
                .with("user_id", presence?.myId)
                .with("members", members))
        guard let trigger else { return }
        let (isFirst, isLast) = state.withLock { state in
            let isFirst = state.untriggered.remove(channel.name) != nil
            return (isFirst, state.untriggered.isEmpty)
        }
        guard isFirst else { return }
        do {
            try channel.trigger(trigger.name, trigger.data)
        } catch {
            completion.end(error)
            return pusher.disconnect()
        }
        if isLast, endsWhenSent { pusher.disconnect() }
    }

    /// Ends the command when no channel is left, or if an argument cannot be the name of a channel.
    private func failed(
        _ channel: PusherChannel, _ failure: Pusher.Failure, _ pusher: Pusher
    ) {
        let isLast = state.withLock { state in
            state.channels.remove(channel.name)
            state.untriggered.remove(channel.name)
            return state.channels.isEmpty
        }
        guard !isLast, failure.error.code != .invalidArgument else {
            completion.end(failure.error)
            return pusher.disconnect()
        }
        console?.note(
            "not subscribed to \(channel.name): \(failure.error.message)",
            JSONLine("unsubscribed").with("channel", channel.name)
                .with("code", "\(failure.error.code)").with(message: failure.error.message)
                .with("status", failure.error.response?.status))
    }
}
