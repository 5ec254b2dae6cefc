import Foundation
import RealtimeFoundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The delegate with PusherSwift's own signatures.
@MainActor private final class Observer: PusherDelegate {
    let notes = Notes()

    func failedToSubscribeToChannel(
        name: String, response: URLResponse?, data: String?, error: NSError?
    ) {
        let response = response as? HTTPURLResponse
        notes.add("\(name) \(response?.statusCode ?? 0) \(data ?? "none")")
        notes.add("\(error?.domain ?? "") \(error?.localizedDescription ?? "")")
        notes.add(response?.value(forHTTPHeaderField: "content-length") ?? "no header")
    }

    func failedToRegisterForPushNotifications(response: URLResponse, responseBody: String?) {
        let status = (response as? HTTPURLResponse)?.statusCode
        notes.add("not registered \(status ?? 0) \(responseBody ?? "none")")
    }
}

/// The same function with the types of `Realtime`.
@MainActor private final class NewObserver: PusherDelegate {
    let notes = Notes()

    func failedToSubscribeToChannel(
        name: String, response: HTTPResponse?, data: String?, error: RealtimeError?
    ) {
        notes.add("\(name) \(response?.status ?? 0)")
    }
}

/// Answers at once, and does not keep the completion handler.
private final class Refusal: Authorizer {
    func fetchAuthValue(
        socketID: String, channelName: String, completionHandler: (PusherAuth?) -> Void
    ) {
        completionHandler(nil)
    }
}

/// Forms that programs for PusherSwift have, beside those of `PusherReadmeTests`.
@Suite(.timeLimit(.minutes(5))) @MainActor struct PusherSwiftShapesTests {
    @Test func delegatesHaveFoundationTypes() async throws {
        let app = try await PusherApp()
        try await app.control("auth", ["mode": "deny", "body": "not you"])
        let (observer, newObserver) = (Observer(), NewObserver())
        let pusher = app.pusher(.endpoint(authEndpoint: app.authEndpoint)) {
            $0.pushURL = "http://127.0.0.1:\(PusherApp.port)/push"
        }
        pusher.delegate = observer
        try await pusher.connected()
        pusher.subscribe("private-a")
        let lines = await observer.notes.wait(count: 3)
        #expect(lines[0] == "private-a 403 not you" && lines[2] == "7")
        #expect(lines[1].hasPrefix("librealtime ") && lines[1].contains("refused"))
        try await app.control("push", ["status": 422, "body": "bad token"])
        pusher.nativePusher.register(deviceToken: Data([1]))
        await observer.notes.wait(for: "not registered 422 bad token")

        try await app.control("auth", ["mode": "deny", "body": "not you"])
        pusher.delegate = newObserver
        pusher.subscribe("private-b")
        await newObserver.notes.wait(for: "private-b 403")
    }

    /// A closure whose parameter has no type receives the event.
    @Test func closuresNeedNoTypes() async throws {
        let app = try await PusherApp()
        let notes = Notes()
        func old(_ data: Any?) { notes.add("function \(data as? Int ?? 0)") }
        let pusher = app.pusher()
        let channel = pusher.subscribe("a")
        channel.bind(eventName: "e") { notes.add("\(type(of: $0))") }
        channel.bind(eventName: "e") { event in notes.add("data \(event.data ?? "")") }
        channel.bind(eventName: "e") { _ in notes.add("nothing") }
        channel.bind(eventName: "e") { (data: Any?) in notes.add("any \(data as? Int ?? 0)") }
        channel.bind(eventName: "e", callback: { notes.add("label \($0 as? Int ?? 0)") })
        channel.bind(eventName: "e", callback: old)
        try await pusher.connected()
        try await channel.subscribed()
        pusher.bind { notes.add("all \(type(of: $0))") }
        pusher.bind { (message: Any?) in notes.add("message \(message is [String: Any])") }
        pusher.bind(callback: { notes.add("label \($0 is [String: Any])") })
        try await app.publish("a", "e", 7)
        #expect(
            await notes.wait(count: 9) == [
                "all PusherEvent", "message true", "label true", "PusherEvent", "data 7",
                "nothing", "any 7", "label 7", "function 7",
            ])
    }

    @Test func completionHandlersNeedNotEscape() async throws {
        let app = try await PusherApp()
        let pusher = app.pusher(AuthMethod.authorizer(authorizer: Refusal()))
        let channel = pusher.subscribe("private-a")
        try await pusher.connected()
        let error = await #expect(throws: RealtimeError.self) { try await channel.subscribed() }
        #expect(error?.code == .auth)
    }
}
