internal import Engine
internal import Wire

// Names of IKEventSource that differ from those of this library.

/// The state of an event source.
public typealias EventSourceState = EventSource.ReadyState

extension EventSource {
    /// Where `EventSource(url:headers:)` keeps the last event id for the next run of the program.
    public enum IDFile: Sendable {
        /// `librealtime/event-ids/PROGRAM` below the folder that XDG_STATE_HOME names, or else
        /// below `~/.local/state`; PROGRAM is the name of the executable. Ids are kept by URL,
        /// without user and password. If this file cannot be used, for example without a home
        /// folder, the log says so (`Log.send`), and no id is kept.
        case standard
        /// This file; see `Options.idFile`.
        case path(String)
        /// No id is kept.
        case none
    }

    /// Creates an event source with these headers, and connects. It continues after the last event
    /// that an earlier run of the program handled. An invalid URL or header is a fatal error, which
    /// `onError` and the iteration report.
    /// - Parameters:
    ///   - url: `http://` or `https://`.
    ///   - idFile: where the last event id is kept for the next run; `resetStoredID` deletes it.
    public convenience init(
        url: String, headers: [String: String] = [:], idFile: IDFile = .standard,
        on loop: Loop = .shared
    ) {
        var options = Options()
        options.headers = headers.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
        switch idFile {
        case .standard: options.idFile = Options.standardIDFile
        case .path(let path): options.idFile = path
        case .none: break
        }
        let connection: EventSourceConnection
        do throws(RealtimeError) {
            connection = try options.connection(to: url, on: loop)
        } catch {
            connection = EventSourceConnection(failing: error, on: loop.engine)
        }
        self.init(connection, options, on: loop)
        try? start()
    }
}
