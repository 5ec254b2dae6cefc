import Wire

// The members of presence channels. A user is one member, whatever the number of its connections.
extension PusherSession {
    /// The table of a subscription that has succeeded.
    mutating func replaceMembers(_ id: ChannelID, _ data: PusherData) {
        do throws(RealtimeError) {
            channels[id]?.presence = try PusherPresenceTable(data)
        } catch {
            channels[id]?.presence.removeAll()
            log(error.message)
        }
        reportAllMembers(id)
    }

    mutating func clearMembers(_ id: ChannelID) {
        guard let count = channels[id]?.presence.count, count > 0 else { return }
        channels[id]?.presence.removeAll()
        reportAllMembers(id)
    }

    private mutating func reportAllMembers(_ id: ChannelID) {
        guard let entry = channels[id] else { return }
        let ownID = entry.state == .subscribed ? entry.ownID : nil
        report(id, .members(.all(PusherMembers(table: entry.presence, myID: ownID))))
    }

    mutating func memberAdded(_ envelope: PusherEnvelope) {
        guard let (id, member) = presenceMember(envelope) else { return }
        let isKnown = channels[id]?.presence[member.id] != nil
        guard channels[id]?.presence.insert(member) == true else {
            return log(
                "a presence channel has too many members: \(member.id.quoted(upTo: 60)) is ignored")
        }
        report(id, .members(.set(member)))
        // Some servers report each connection of a user.
        guard !isKnown else { return }
        report(id, .memberAdded(member))
        report(.event(PusherEvent(envelope, named: "pusher:member_added"), id))
    }

    mutating func memberRemoved(_ envelope: PusherEnvelope) {
        guard let (id, member) = presenceMember(envelope),
            let removed = channels[id]?.presence.remove(member.id)
        else { return }
        report(id, .members(.removed(removed.id)))
        report(id, .memberRemoved(removed))
        report(.event(PusherEvent(envelope, named: "pusher:member_removed"), id))
    }

    /// The member of a message about a presence channel that is subscribed.
    private mutating func presenceMember(
        _ envelope: PusherEnvelope
    ) -> (id: ChannelID, member: PusherMember)? {
        guard let channel = envelope.channel, let id = channels[channel]?.id,
            let entry = channels[id], entry.state == .subscribed, entry.name.kind == .presence
        else { return nil }
        do throws(RealtimeError) {
            return (id, try PusherMember(envelope.data))
        } catch {
            log(error.message)
            return nil
        }
    }
}
