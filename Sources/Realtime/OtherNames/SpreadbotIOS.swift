// Names of Spreadbot_iOS that differ from those of this library.
extension Spreadbot {
    /// Where handlers run.
    public typealias Executor = HandlerExecutor
}
