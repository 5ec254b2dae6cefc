package import Wire

/// The share of a client event in what may wait for the server. The session releases it after the
/// event's message was passed to the socket, or when the event is dropped.
package protocol PusherEventRoom: AnyObject, Sendable {}

// Events that the application sends to the other subscribers of a channel.
extension PusherSession {
    /// Sends an event. It waits until the channel is subscribed, also for another connection, but
    /// not after the end of its registration.
    /// - Parameters:
    ///   - id: a channel that allows client events.
    ///   - event: passed `PusherEventName.checkClientEvent`.
    package mutating func trigger(
        _ id: ChannelID, _ event: String, _ data: JSONText?,
        room: (any PusherEventRoom)? = nil, now: Instant
    ) {
        guard channels.isRegistered(id), let entry = channels[id] else { return }
        let event = PusherChannelEntry.ClientEvent(event: event, data: data, room: room)
        if entry.state == .subscribed, entry.clientEvents.isEmpty, mayTrigger(now) {
            return send(event, entry.name, now)
        }
        guard entry.clientEvents.count < configuration.clientEventQueue else {
            let error = RealtimeError(
                .queueFull,
                "the event was dropped: \(configuration.clientEventQueue) client events of"
                    + " \(entry.name.text.quoted()) wait"
                    + OptionOwner.pusher.mention(.clientEventQueue))
            return report(id, .triggerFailed(event: event.event, error))
        }
        channels[id]?.clientEvents.append(event)
        if entry.state == .subscribed, entry.clientEvents.isEmpty { paced.append(id) }
    }

    /// Sends what has waited for the subscription.
    mutating func sendClientEvents(_ id: ChannelID, _ now: Instant) {
        guard let entry = channels[id], !entry.clientEvents.isEmpty else { return }
        if sendWaiting(id, entry, now) || paced.contains(id) { return }
        paced.append(id)
    }

    /// Sends events that the pacer has delayed.
    mutating func sendPaced(_ now: Instant) {
        while let id = paced.first, mayTrigger(now) {
            let isDone = channels[id].map { sendWaiting(id, $0, now) } ?? true
            if isDone { paced.removeFirst() }
        }
    }

    /// - Returns: whether none waits any more.
    private mutating func sendWaiting(
        _ id: ChannelID, _ entry: PusherChannelEntry, _ now: Instant
    ) -> Bool {
        guard entry.state == .subscribed else { return true }
        var count = 0
        while count < entry.clientEvents.count, mayTrigger(now) {
            send(entry.clientEvents[count], entry.name, now)
            count += 1
        }
        channels[id]?.clientEvents.removeFirst(count)
        return count == entry.clientEvents.count
    }

    private func mayTrigger(_ now: Instant) -> Bool {
        pacer.map { $0.earliest <= now } ?? true
    }

    private mutating func send(
        _ event: PusherChannelEntry.ClientEvent, _ name: PusherChannelName, _ now: Instant
    ) {
        pacer?.sent(now)
        if let room = event.room { sentRooms.append(room) }
        send(PusherMessage.clientEvent(event.event, channel: name.text, data: event.data))
    }

    static func pacer(_ configuration: PusherConfiguration) -> PusherEventPacer? {
        let rate = configuration.clientEventRate
        return rate > 0 ? PusherEventPacer(rate: rate) : nil
    }
}
