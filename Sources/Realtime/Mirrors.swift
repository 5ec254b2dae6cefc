// The objects hold their options. `dump` would show these, and much that only concerns the library.
extension WebSocket: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension EventSource: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension LongPoll: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension REST: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}

extension Spreadbot: CustomReflectable {
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

extension DDPClient: CustomReflectable {
    public var customMirror: Mirror { Shown.mirror(self) }
}
