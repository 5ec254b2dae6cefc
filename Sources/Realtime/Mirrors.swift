// The objects hold their options, and what belongs to them leads to the objects. `dump` would show
// these, and much that only concerns the library.
extension WebSocket: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension WebSocket.Messages: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension WebSocket.Messages.Iterator: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension WebSocket.Pieces: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension WebSocket.Pieces.Iterator: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension WebSocket.MessageWriter: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension EventSource: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension EventSource.Iterator: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension EventStreamParser: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension LongPoll: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension LongPoll.Iterator: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension REST: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension REST.Stream: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension REST.Stream.Iterator: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension Spreadbot: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension Spreadbot.Messages: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension SpreadbotREST: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension Pusher: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension PusherConnection: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension PusherChannel: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension PusherChannels: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension PusherEvents: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension PusherUser: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension NativePusher: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPClient: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPCollection: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPResults: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPResults.AsyncIterator: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPLiveChanges: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPLiveChanges.AsyncIterator: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPLiveQuery: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPCall: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPStub: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPRandomStream: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPSubscription: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension SubscriptionLoader: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPModels: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPModelChanges: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPModelLiveChanges: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPModelLiveChanges.AsyncIterator: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPModelObservation: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPObjectChangeSequence: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension DDPObjectChangeSequence.AsyncIterator: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension Loop: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension Reachability: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension Reachability.Changes: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension Reachability.Changes.AsyncIterator: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension StateSequence: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension StateSequence.Iterator: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}
