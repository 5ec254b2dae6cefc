/// A value that only the main actor uses. It need not be Sendable: the expression that gives it is
/// evaluated on the main actor, at once when this is created there, otherwise as soon as it is
/// free.
@MainActor final class MainActorValue<Value> {
    /// At first the expression, then the value.
    private var get: @MainActor () -> Value
    private var isKnown = false

    nonisolated init(_ expression: @escaping @MainActor () -> Value) {
        get = expression
        Task.immediate { @MainActor in _ = value }
    }

    var value: Value {
        if !isKnown {
            let value = get()
            // Also releases what the expression has captured.
            get = { value }
            isKnown = true
        }
        return get()
    }
}
