// Prints the events of a Pusher channel; reconnects by itself.
@preconcurrency import Glibc
import Realtime

setlinebuf(stdout)
let words = CommandLine.arguments
let options = PusherClientOptions(host: .host(words[3]), port: Int(words[4]), useTLS: false)
let pusher = Pusher(key: words[1], options: options)
pusher.connect()
for await event in pusher.subscribe(words[2]).events() {
    print("\(event.eventName): \(event.data ?? "")")
}
