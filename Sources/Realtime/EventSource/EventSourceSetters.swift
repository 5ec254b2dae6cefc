internal import Engine
internal import Session
public import Wire

// Handlers; the last one set counts. Calls that wait for their executor when a handler is replaced
// or removed still run, unless the source is closed.
extension EventSource {
    /// Called when the stream is open: the server responded with 200 and text/event-stream.
    public func onOpen(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (Opened) -> Void)?
    ) {
        let handler = Realtime.Handler(handler)
        set { [dispatcher] in
            $0.open = handler.map { handler in
                { opened in dispatcher.run(on: handler.isolation) { handler.call(opened) } }
            }
        }
    }

    /// Sets a handler without arguments for the open stream.
    public func onOpen(
        @_inheritActorContext _ handler: @escaping @Sendable @isolated(any) () -> Void
    ) {
        let handler = Realtime.Handler(handler)
        set { [dispatcher] in
            $0.open = { _ in dispatcher.run(on: handler.isolation) { handler.call() } }
        }
    }

    /// Called for failed attempts and ended streams. A wait for a network is reported once, by the
    /// failure that led to it or by `.connect`; `retryIn` is then nil. An error that occurs before
    /// the handler is set is kept for it.
    public func onError(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (ErrorEvent) -> Void)?
    ) {
        let handler = Realtime.Handler(handler)
        set { [dispatcher] in
            $0.error = handler.map { handler in
                { failure in
                    let event = ErrorEvent(failure)
                    dispatcher.run(on: handler.isolation) { handler.call(event) }
                }
            }
        }
    }

    /// Called for events of the type "message", which is also the type of events without one.
    public func onMessage(@_inheritActorContext _ handler: Handler?) {
        let handler = Realtime.Handler(handler)
        set { $0.message = handler.map(texts) }
        dispatcher.resume()
    }

    /// Called for events of all types, after the listeners of the event's type.
    public func onAny(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (Event) -> Void)?
    ) {
        let handler = Realtime.Handler(handler)
        set {
            $0.any = handler.map { handler in
                delivering(on: handler.isolation) { handler.call($0) }
            }
        }
        dispatcher.resume()
    }

    /// Called for each comment.
    public func onComment(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (String) -> Void)?
    ) {
        let handler = Realtime.Handler(handler)
        set { [dispatcher] in
            $0.comment = handler.map { handler in
                { comment in
                    let text = String(decoding: comment, as: UTF8.self)
                    dispatcher.run(on: handler.isolation, count: text.utf8.count) {
                        handler.call(text)
                    }
                }
            }
        }
        dispatcher.resume()
    }

    /// Called for each reconnection time.
    public func onRetry(
        @_inheritActorContext _ handler: (@Sendable @isolated(any) (Duration) -> Void)?
    ) {
        let handler = Realtime.Handler(handler)
        set { [dispatcher] in
            $0.retry = handler.map { handler in
                { milliseconds in
                    dispatcher.run(on: handler.isolation) {
                        handler.call(.milliseconds(milliseconds))
                    }
                }
            }
        }
        dispatcher.resume()
    }

    /// Adds a listener for events of one type, compared byte for byte. Listeners are called in the
    /// order in which they were added.
    @discardableResult
    public func addEventListener(
        _ event: String, @_inheritActorContext _ handler: @escaping Handler
    ) -> Listener {
        let token = Realtime.Handler(handler).flatMap { handler in
            // Fails if the loop has ended; then no listener is called anyway.
            try? connection.addListener(Array(event.utf8), texts(handler))
        }
        dispatcher.resume()
        return Listener(token: token ?? 0)
    }

    /// Removes all listeners for events of one type.
    public func removeEventListener(_ event: String) {
        try? connection.removeListeners(Array(event.utf8))
    }

    public func removeEventListener(_ listener: Listener) {
        _ = try? connection.removeListener(listener.token)
    }

    /// The types that have a listener, in bytewise order.
    public func events() -> [String] {
        connection.listenedTypes.map { String(decoding: $0, as: UTF8.self) }
    }

    private func texts(
        _ handler: Realtime.Handler<@Sendable (String, String, String) -> Void>
    ) -> EventSourceHandlers.Event {
        delivering(on: handler.isolation) { handler.call($0.id, $0.event, $0.data) }
    }
}
