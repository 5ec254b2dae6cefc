public import Foundation
public import Realtime

// A `URL` is used as its `absoluteString`, relative to its base. An invalid one is an error
// of the call: a file URL, for example, is a `RealtimeError(.unsupportedScheme)`.

extension WebSocket {
    /// Connects and returns when messages can be sent and received; see
    /// `connect(_:options:on:handlers:)`.
    public static func connect(
        _ url: URL, options: Options = Options(), on loop: Loop = .shared,
        handlers: Handlers = Handlers()
    ) async throws -> WebSocket {
        try await connect(url.absoluteString, options: options, on: loop, handlers: handlers)
    }

    /// Creates a connection that passes its messages to `handlers`; see
    /// `init(_:options:on:handlers:)`.
    public convenience init(
        _ url: URL, options: Options = Options(), on loop: Loop = .shared, handlers: Handlers
    ) throws {
        try self.init(url.absoluteString, options: options, on: loop, handlers: handlers)
    }
}

extension EventSource {
    /// Creates an event source and, unless `start` is false, connects; see
    /// `init(_:options:on:start:)`.
    public convenience init(
        _ url: URL, options: Options = Options(), on loop: Loop = .shared, start: Bool = true
    ) throws {
        try self.init(url.absoluteString, options: options, on: loop, start: start)
    }

    /// Creates an event source with these headers and connects; see `init(url:headers:idFile:on:)`.
    public convenience init(
        url: URL, headers: [String: String] = [:], idFile: IDFile = .standard,
        on loop: Loop = .shared
    ) {
        self.init(url: url.absoluteString, headers: headers, idFile: idFile, on: loop)
    }
}

extension EventSource {
    /// IKEventSource's name for `url`: the URL of the next attempt, without user and password.
    // swift-format-ignore: AlwaysUseLowerCamelCase
    public var URL: Foundation.URL? { Foundation.URL(string: url) }
}

extension LongPoll {
    /// Creates a long poll and, unless `start` is false, starts polling; see
    /// `init(_:options:on:start:)`.
    public convenience init(
        _ url: URL, options: Options = Options(), on loop: Loop = .shared, start: Bool = true
    ) throws {
        try self.init(url.absoluteString, options: options, on: loop, start: start)
    }
}

extension REST {
    /// - Parameter baseURL: the URL to which paths are appended.
    /// - Throws: `RealtimeError` for an invalid URL or option.
    public convenience init(
        _ baseURL: URL, options: Options = Options(), on loop: Loop = .shared
    ) throws {
        try self.init(baseURL.absoluteString, options: options, on: loop)
    }
}

extension REST.Request {
    public init(
        _ method: String, _ url: URL, body: Body = .none,
        headers: [(name: String, value: String)] = []
    ) {
        self.init(method, url.absoluteString, body: body, headers: headers)
    }
}

extension REST.Response {
    /// The URL of the response, after redirects, without user and password.
    public var finalURL: URL? { URL(string: url) }
}

extension Spreadbot.Configuration {
    /// - Parameter baseURL: the URL to which paths are appended, `http://` or `https://` without a
    ///   query.
    public init(baseURL: URL) { self.init(baseURL: baseURL.absoluteString) }

    /// `outbox` as a file URL.
    public var outboxURL: URL? {
        get { outbox.map { URL(filePath: $0) } }
        set { outbox = newValue?.filePath }
    }
}

extension EventSource.Options {
    /// `idFile` as a file URL.
    public var idFileURL: URL? {
        get { idFile.map { URL(filePath: $0) } }
        set { idFile = newValue?.filePath }
    }
}

extension Network {
    /// `caFile` as a file URL.
    public var caFileURL: URL? {
        get { caFile.map { URL(filePath: $0) } }
        set { caFile = newValue?.filePath }
    }
}

extension URL {
    fileprivate var filePath: String { path(percentEncoded: false) }
}
