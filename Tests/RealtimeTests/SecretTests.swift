import Realtime
import Testing

/// What `print`, interpolation, `dump` and mirrors show of values and objects that hold secrets:
/// everything but these (docs/pusher.md, "Secrets"; docs/http.md, G11).
struct SecretTests {
    private let fields = [(name: "X-Token", value: "S3cret")]
    private let url = "http://user:S3cret@127.0.0.1:1"

    private var network: Network {
        var network = Network()
        network.proxy = .url("http://user:S3cret@proxy.test:8080")
        return network
    }

    /// All ways to look at a value.
    private func views(_ value: Any) -> [String] {
        var texts = ["\(value)", String(reflecting: value)]
        dump(value, to: &texts[1])
        collect(value, depth: 0, into: &texts)
        return texts
    }

    private func collect(_ value: Any, depth: Int, into texts: inout [String]) {
        guard depth < 8 else { return }
        for child in Mirror(reflecting: value).children {
            texts.append("\(child.label ?? ""): \(child.value)")
            texts.append(String(reflecting: child.value))
            collect(child.value, depth: depth + 1, into: &texts)
        }
    }

    /// - Parameter visible: what must be shown all the same.
    private func expectHidden(_ value: Any, visible: String...) {
        let texts = views(value)
        #expect(!texts.contains { $0.contains("S3cret") }, "\(type(of: value))")
        // The bytes of a key, as an array shows them.
        #expect(!texts.contains { $0.contains("83, 51") }, "\(type(of: value))")
        for text in visible { #expect("\(value)".contains(text), "\(value)") }
    }

    @Test func networksHideThePasswordsOfProxyAndKey() {
        var network = network
        network.clientCertificate = Network.ClientCertificate(
            certificateFile: "client.pem", keyPassword: "S3cret")
        network.caFile = "ca.pem"
        expectHidden(network, visible: "client.pem", "ca.pem", "proxy.test:8080")
        expectHidden(network.proxy, visible: "***@proxy.test")
        #expect(network.clientCertificate?.keyPassword == "S3cret")
    }

    @Test func optionsOfConnectionsHideTheValuesOfHeaders() {
        var webSocket = WebSocket.Options()
        (webSocket.headers, webSocket.network) = (fields, network)
        expectHidden(webSocket, visible: "X-Token", "maxMessageBytes")
        var source = EventSource.Options()
        (source.headers, source.network, source.body) = (fields, network, Array("S3cret".utf8))
        source.storeKey = "\(url)/stream?token=S3cret"
        expectHidden(source, visible: "X-Token", "retryStatuses", "127.0.0.1:1/stream")
        #expect(source.storeKey == "\(url)/stream?token=S3cret")
        var poll = LongPoll.Options()
        (poll.headers, poll.network) = (fields, network)
        expectHidden(poll, visible: "X-Token")
        var client = DDPClient.Options()
        (client.headers, client.network) = (fields, network)
        client.loadToken = { "S3cret" }
        expectHidden(client, visible: "X-Token", "tokenFile")
        #expect(source.headers[0].value == "S3cret" && client.headers[0].value == "S3cret")
    }

    @Test func optionsAndRequestsOfRESTHideCredentials() {
        var options = REST.Options()
        (options.bearerToken, options.headers, options.network) = ("S3cret", fields, network)
        expectHidden(options, visible: "X-Token", "attempts: 3")
        var request = REST.Request(
            "POST", "\(url)/login", body: .json(#"{"password":"S3cret"}"#), query: fields,
            headers: fields)
        expectHidden(request, visible: "POST", "/login", "X-Token", "json(21)")
        for body in [.text("S3cret"), .bytes(Array("S3cret".utf8))] as [REST.Request.Body] {
            request.body = body
            expectHidden(request, visible: "(6)")
        }
        #expect(request.path == "\(url)/login" && request.query[0].value == "S3cret")
        #expect("\(REST.Options())".contains("BearerToken: nil"))
    }

    @Test func configurationsOfSpreadbotHideTokens() {
        var config = Spreadbot.Configuration(baseURL: "\(url)/feed")
        config.authURL = "\(url)/auth"
        config.sendURL = "\(url)/send"
        config.transportURLs = [.poll: url]
        (config.accessToken, config.refreshToken) = ("S3cret", "S3cret")
        config.base64Credentials = "S3cret"
        (config.headers, config.network) = (fields, network)
        expectHidden(config, visible: "/feed", "/auth", "/send", "X-Token")
        #expect(config.baseURL == "\(url)/feed" && config.accessToken == "S3cret")
    }

    @Test func optionsOfPusherHideKeysAndAuthorizations() {
        var options = PusherClientOptions(authMethod: .inline(secret: "S3cret"), port: 4711)
        options.encryptionMasterKey = Array("S3cret".utf8)
        options.authHeaders = fields
        options.authParams = fields
        (options.headers, options.network) = (fields, network)
        options.pushURL = "\(url)/push"
        options.userAuthMethod = .endpoint(authEndpoint: "\(url)/user-auth")
        expectHidden(options, visible: "X-Token", "4711", "/push", "/user-auth", "inline")
        #expect(options.encryptionMasterKey == Array("S3cret".utf8))
    }

    @Test func methodsOfPusherHideWhatTheyHold() {
        let auth = PusherAuth(auth: "KEY:S3cret", channelData: "S3cret", sharedSecret: "S3cret")
        expectHidden(auth)
        expectHidden(PusherUserAuth(auth: "KEY:S3cret", userData: "S3cret"))
        expectHidden(AuthMethod.inline(secret: "S3cret"), visible: "inline")
        expectHidden(AuthMethod.endpoint(authEndpoint: "\(url)/auth"), visible: "/auth")
        let token = "S3cret"
        expectHidden(AuthMethod.authorizer(authorizer: Fixed(token: token)), visible: "authorizer")
        expectHidden(AuthMethod.authRequestBuilder(authRequestBuilder: Fixed(token: token)))
        expectHidden(
            PusherUserAuthMethod.authorizer { _ in
                PusherUserAuth(auth: token, userData: token)
            }, visible: "authorizer")
    }

    private struct Fixed: Authorizer, PusherAuthRequestBuilder {
        let token: String

        func fetchAuthValue(
            socketID: String, channelName: String,
            completionHandler: @escaping @Sendable (PusherAuth?) -> Void
        ) {
            completionHandler(PusherAuth(auth: token))
        }

        func authorizationRequest(socketID: String, channelName: String) -> REST.Request? {
            REST.Request("POST", token)
        }
    }

    @Test func objectsHideTheirOptions() throws {
        var webSocket = WebSocket.Options()
        webSocket.headers = fields
        let handlers = WebSocket.Handlers()
        expectHidden(try WebSocket("ws://127.0.0.1:1", options: webSocket, handlers: handlers))
        var source = EventSource.Options()
        source.headers = fields
        expectHidden(try EventSource(url, options: source, start: false))
        var poll = LongPoll.Options()
        poll.headers = fields
        expectHidden(try LongPoll(url, options: poll, start: false))
        var rest = REST.Options()
        (rest.bearerToken, rest.headers) = ("S3cret", fields)
        expectHidden(try REST(url, options: rest))
        var config = Spreadbot.Configuration(baseURL: url)
        (config.accessToken, config.refreshToken) = ("S3cret", "S3cret")
        expectHidden(try Spreadbot(config: config))
        expectHidden(try SpreadbotREST(config: config))
        var client = DDPClient.Options()
        client.headers = fields
        expectHidden(try DDPClient("ws://127.0.0.1:1", options: client))
        var options = PusherClientOptions(authMethod: .inline(secret: "S3cret"))
        options.encryptionMasterKey = Array(repeating: 83, count: 32)
        let pusher = Pusher(key: "KEY", options: options)
        expectHidden(pusher)
        expectHidden(pusher.connection)
        expectHidden(pusher.connection.options)
        expectHidden(pusher.subscribe("presence-a"))
    }
}
