// A chat over a presence channel: prints each member that comes or goes, and what the others say;
// sends them each line of its input.
//
//     chat KEY CHANNEL HOST PORT NAME
@preconcurrency import Glibc
import Realtime

setlinebuf(stdout)
let words = CommandLine.arguments
let endpoint = "http://\(words[3]):\(words[4])/pusher/auth"
var options = PusherClientOptions(
    authMethod: .endpoint(authEndpoint: endpoint), host: .host(words[3]), port: Int(words[4]),
    useTLS: false)
options.authParams = [(name: "user_id", value: words[5])]
let pusher = Pusher(key: words[1], options: options)
let chat = pusher.subscribeToPresenceChannel(
    channelName: words[2],
    onMemberAdded: { member in print("\(member.userId) comes") },
    onMemberRemoved: { member in print("\(member.userId) goes") })
chat.bind(eventName: "client-message") { (event: PusherEvent) in
    print("\(event.userId ?? ""): \(event.data ?? "")")
}
pusher.connect()
try await chat.subscribed()
for member in chat.members { print("\(member.userId) is here") }

// Callbacks run on the main actor, so another task waits for input.
await Task.detached {
    while let line = readLine() { chat.trigger(eventName: "client-message", data: line) }
}.value
