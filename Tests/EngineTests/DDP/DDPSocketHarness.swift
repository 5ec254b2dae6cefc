import Session
import Testing
import Wire

@testable import Engine

/// A socket to an app of its own on Tests/Support/ddp_server. The test drives the loop.
final class DDPSocketHarness: DDPSocketOwner {
    let isBusy = false
    let loop: Loop
    private let rest: RESTClient
    private let app: String
    var configuration: DDPClientConfiguration
    lazy var cookies = CookieJar(host: configuration.address.webSocket.host)
    private(set) var socket: (any DDPSocket)?
    private(set) var openings = 0
    /// How often bytes were reported.
    private(set) var hearings = 0
    /// The messages that were received.
    private(set) var messages: [JSONValue] = []
    private(set) var ends: [DDPSocketEnd] = []
    /// Called for each message.
    var handle: (JSONValue) -> Void = { _ in }

    /// A guard against hanging.
    private static let patience = Duration.seconds(30)
    private static let server = PeerServer("Tests/Support/ddp_server")

    init(_ settings: JSONValue = [:]) throws {
        loop = try Loop()
        rest = try RESTClient(base: DDPSocketHarness.server.url, on: loop)
        let new = try PeerServer.post("control/new_app", [:], by: rest)
        app = new["id"]?.stringValue ?? ""
        configuration = DDPClientConfiguration(
            try DDPAddress(parsing: "\(DDPSocketHarness.server.url)/apps/\(app)"))
        try control("settings", settings)
    }

    deinit { loop.close() }

    /// Ends what retains this object.
    func end() {
        socket?.drop()
        socket = nil
        handle = { _ in }
        rest.close()
    }

    // MARK: The loop

    func run(
        until isDone: () -> Bool, _ location: SourceLocation = #_sourceLocation
    ) throws {
        let end = ContinuousClock.now + DDPSocketHarness.patience
        while !isDone() {
            guard ContinuousClock.now < end else {
                Issue.record(
                    "it did not happen; so far: \(messages) \(ends)", sourceLocation: location)
                throw RealtimeError(.timeout, "the test's patience")
            }
            try loop.dispatch(timeout: 100)
        }
    }

    /// Runs until a message has arrived with these members.
    func run(
        until text: String, _ location: SourceLocation = #_sourceLocation
    ) throws {
        let wanted = try JSONValue(parsing: text)
        try run(until: { messages.contains(wanted) }, location)
    }

    func runToEnd(_ location: SourceLocation = #_sourceLocation) throws -> DDPSocketEnd {
        try run(until: { !ends.isEmpty }, location)
        return ends[0]
    }

    // MARK: The socket

    /// Replaces the socket by a new one.
    func start(_ transport: DDPTransport) throws {
        ends = []
        let socket: any DDPSocket =
            switch transport {
            case .webSocket: try DDPWebSocket(configuration, on: loop, owner: self)
            case .sockJS: SockJSSocket(configuration, on: loop, owner: self)
            }
        self.socket = socket
        try socket.start()
    }

    func open(_ transport: DDPTransport) throws {
        try start(transport)
        try run { openings == 1 }
    }

    /// Opens the socket, and agrees with the server on a version.
    func connect(_ transport: DDPTransport) throws {
        try open(transport)
        send(#"{"msg":"connect","version":"1","support":["1"]}"#)
        try run { messages.contains { $0["msg"] == "connected" } }
    }

    func send(_ text: String) { socket?.send(Array(text.utf8)) }

    func opened(_ socket: any DDPSocket, _ opened: Opened) {
        #expect(socket === self.socket)
        openings += 1
    }

    func heard(by socket: any DDPSocket) {
        #expect(socket === self.socket && ends.isEmpty)
        hearings += 1
    }

    func received(_ text: UnsafeRawBufferPointer, by socket: any DDPSocket) {
        #expect(socket === self.socket && ends.isEmpty)
        guard let message = try? JSONValue(parsing: text) else {
            Issue.record("a message that is not JSON")
            return
        }
        messages.append(message)
        handle(message)
    }

    func ended(_ end: DDPSocketEnd, of socket: any DDPSocket) { ends.append(end) }

    // MARK: The server

    /// An action of control.py.
    @discardableResult
    func control(_ action: String, _ arguments: JSONValue = [:]) throws -> JSONValue {
        try PeerServer.post("apps/\(app)/control/\(action)", arguments, by: rest)
    }
}
