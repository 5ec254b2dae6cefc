// Prints the members and prices of a presence channel, with PusherSwift's names.
//
//     pusher_app KEY CHANNEL HOST PORT TOKEN
@preconcurrency import Foundation
import FoundationNetworking
import RealtimeFoundation

/// Asks the app's own server, with a token.
struct RequestBuilder: AuthRequestBuilderProtocol {
    let url: String
    let token: String

    func requestFor(socketID: String, channelName: String) -> URLRequest? {
        guard let url = URL(string: url) else { return nil }
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.httpBody = Data("socket_id=\(socketID)&channel_name=\(channelName)".utf8)
        request.addValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        return request
    }
}

@MainActor final class Screen: PusherDelegate {
    private let pusher: Pusher

    init(key: String, options: PusherClientOptions) {
        pusher = Pusher(key: key, options: options)
        pusher.delegate = self
    }

    func show(_ name: String) {
        let channel = pusher.subscribeToPresenceChannel(channelName: name) { member in
            print("\(member.userId) comes")
        }
        channel.bind(eventName: "pusher:subscription_succeeded") { (_: Any?) in
            print("I am \(channel.myId ?? ""), one of \(channel.members.count)")
        }
        channel.bind(eventName: "new-price") { (data: Any?) in
            if let data = data as? [String: Any] { print("price: \(data["price"] ?? "")") }
        }
        pusher.connect()
    }

    func changedConnectionState(from old: ConnectionState, to new: ConnectionState) {
        print("\(old.stringValue()) -> \(new.stringValue())")
    }
}

setlinebuf(stdout)
let words = CommandLine.arguments
let builder = RequestBuilder(
    url: "http://\(words[3]):\(words[4])/pusher/auth", token: words[5])
let screen = Screen(
    key: words[1],
    options: PusherClientOptions(
        authMethod: .authRequestBuilder(authRequestBuilder: builder), host: .host(words[3]),
        port: Int(words[4]), useTLS: false))
screen.show(words[2])
dispatchMain()
