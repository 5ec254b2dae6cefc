/// Changes to the next attempt, for a function that is asked before it.
public struct NextAttempt: Sendable {
    /// nil keeps the URL.
    public var url: String? {
        get { hiddenURL.value }
        set { hiddenURL.value = newValue }
    }
    private var hiddenURL = HiddenURL(nil)
    /// nil keeps the headers.
    public var headers: [(name: String, value: String)]? {
        get { hiddenHeaders.value }
        set { hiddenHeaders.value = newValue }
    }
    private var hiddenHeaders = Hidden<[(name: String, value: String)]?>(nil)
}
