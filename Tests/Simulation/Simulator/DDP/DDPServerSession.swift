import Session
import Wire

/// A session at the server: in Meteor 3.5 over several connections. It sends of each document only
/// what differs from what it has sent before, whichever subscriptions publish it.
final class DDPServerSession {
    let id: String
    private let world: World
    private let deliver: (String, DDPLink) -> Void
    /// nil while it waits for another connection.
    private(set) var link: DDPLink?
    private(set) var isClosed = false
    /// False after `disconnect`.
    var isKept = true
    var user: String?
    /// The user's own document is published.
    var isUserShown = false
    /// Of the last login.
    var token: String?
    var subscriptions: [String: DDPServerSubscription] = [:]
    /// What was sent of each document.
    private(set) var view: [DDPServerKey: DDPServerFields] = [:]
    /// Changes are collected until then.
    var refresh: World.Alarm?
    private var grace: World.Alarm?

    /// Messages that were sent, as the client counts them.
    private(set) var sent = 0
    private var queue: [String] = []

    var inbox: [JSONValue] = []
    /// A message is handled, and others wait.
    var isBusy = false

    static let grace = Duration.seconds(15)
    static let queueLimit = 100

    init(
        _ id: String, _ link: DDPLink, _ world: World,
        deliver: @escaping (String, DDPLink) -> Void
    ) {
        self.id = id
        self.link = link
        self.world = world
        self.deliver = deliver
    }

    // MARK: Connections

    /// The connection is lost.
    func lost(resumes: Bool) {
        link = nil
        guard resumes, isKept, !isClosed else { return close() }
        grace = world.after(DDPServerSession.grace) { [weak self] in self?.close() }
    }

    /// Continues on another connection, if the client has received everything.
    func resume(_ link: DDPLink, received: Int64?) -> Bool {
        guard self.link == nil, !isClosed, received == Int64(sent) else { return false }
        grace?.cancel()
        self.link = link
        let waiting = queue
        queue = []
        begin()
        for text in waiting { send(text) }
        return true
    }

    func begin() { send(#"{"msg":"connected","session":"\#(id)"}"#) }

    func close() {
        isClosed = true
        link = nil
        grace?.cancel()
        refresh?.cancel()
        queue = []
        inbox = []
    }

    // MARK: Sending

    /// - Parameter counts: it has a `msg`, and is neither a ping nor a pong.
    func send(_ text: String, counts: Bool = true) {
        guard !isClosed else { return }
        guard let link else {
            queue.append(text)
            if queue.count > DDPServerSession.queueLimit {
                world.count("too much queued")
                close()
            }
            return
        }
        if counts { sent += 1 }
        deliver(text, link)
    }

    /// Sends what differs from what was sent.
    func show(_ documents: [DDPServerKey: DDPServerFields]) {
        refresh?.cancel()
        refresh = nil
        let old = view
        view = documents
        for key in Set(old.keys).union(documents.keys).sorted() {
            let head = #""collection":"\#(key.collection)","id":"\#(key.id)""#
            guard let fields = documents[key] else {
                send(#"{"msg":"removed",\#(head)}"#)
                continue
            }
            guard let former = old[key] else {
                let fields = fields.isEmpty ? "" : #","fields":\#(DDPServerSession.json(fields))"#
                send(#"{"msg":"added",\#(head)\#(fields)}"#)
                continue
            }
            let changed = fields.filter { former[$0.key] != $0.value }
            let cleared = former.keys.filter { fields[$0] == nil }.sorted()
            guard !changed.isEmpty || !cleared.isEmpty else { continue }
            var text = #"{"msg":"changed",\#(head)"#
            if !changed.isEmpty { text += #","fields":\#(DDPServerSession.json(changed))"# }
            if !cleared.isEmpty {
                let names = cleared.map { "\"\($0)\"" }.joined(separator: ",")
                text += #","cleared":[\#(names)]"#
            }
            send(text + "}")
        }
    }

    /// What it has sent of a document again, as servers do that do not merge.
    func repeatDocument(_ key: DDPServerKey) {
        guard let fields = view[key] else { return }
        send(
            #"{"msg":"added","collection":"\#(key.collection)","id":"\#(key.id)","fields":"#
                + DDPServerSession.json(fields) + "}")
    }

    static func json(_ fields: DDPServerFields) -> String {
        let members = fields.sorted { $0.key < $1.key }.map { #""\#($0.key)":\#($0.value)"# }
        return "{" + members.joined(separator: ",") + "}"
    }
}
