import Realtime
import Testing

/// Presence, the signed-in user and push interests.
@Suite(.timeLimit(.minutes(5))) struct PusherUserTests {
    // MARK: Presence

    @Test func withoutAFetcherTheSocketIDIsTheUser() async throws {
        let app = try await PusherApp()
        let pusher = app.pusher(.inline(secret: app.secret))
        let channel = pusher.subscribeToPresenceChannel(channelName: "presence-a")
        try await pusher.connected()
        try await channel.subscribed()
        #expect(channel.myId == pusher.connection.socketId)
        #expect(channel.me()?.userId == channel.myId && channel.me()?.userInfo == nil)
        #expect(channel.findMember(userId: "nobody") == nil)
    }

    @Test func membersComeAndLeave() async throws {
        let app = try await PusherApp()
        let notes = Notes()
        let first = app.pusher(.inline(secret: app.secret))
        first.connection.userDataFetcher = {
            PusherPresenceChannelMember(userId: "1", userInfo: ["name": "Zoë"])
        }
        let channel = first.subscribeToPresenceChannel(
            channelName: "presence-a",
            onMemberAdded: { notes.add("added \($0.userId) \($0.info?["n"]?.integerValue ?? 0)") },
            onMemberRemoved: {
                notes.add("removed \($0.userId) \($0.info?["n"]?.integerValue ?? 0)")
            }
        )
        channel.bind(eventName: "pusher:member_added") { (event: PusherEvent) in
            notes.add("event \(event.json?["user_id"]?.stringValue ?? "")")
        }
        try await first.connected()
        try await channel.subscribed()
        #expect(
            channel.members == [PusherPresenceChannelMember(userId: "1", userInfo: ["name": "Zoë"])]
        )
        let second = app.pusher(.inline(secret: app.secret))
        second.connection.userDataFetcher = {
            PusherPresenceChannelMember(userId: "2", userInfo: ["n": 7])
        }
        // Of a second connection of the same user, others learn nothing.
        let third = app.pusher(.inline(secret: app.secret))
        third.connection.userDataFetcher = second.connection.userDataFetcher
        for pusher in [second, third] {
            let same = pusher.subscribeToPresenceChannel(channelName: "presence-a")
            same.onMemberAdded { _ in notes.add("not for present members") }
            try await pusher.connected()
            try await same.subscribed()
            #expect(Set(same.members.map(\.userId)) == ["1", "2"])
        }
        second.disconnect()
        third.disconnect()
        await notes.wait(for: "removed 2 7")
        #expect(Set(notes.all) == ["added 2 7", "event 2", "removed 2 7"] && notes.all.count == 3)
        #expect(channel.members.map(\.userId) == ["1"])
        // Neither duplicated nor stale after a reconnect.
        try await app.control("close", ["code": 4200])
        try await app.received("pusher:subscribe", count: 4)
        try await channel.subscribed()
        #expect(channel.members.map(\.userId) == ["1"])
    }

    @Test func idsMayBeNumbers() async throws {
        let app = try await PusherApp()
        let notes = Notes()
        let pusher = app.pusher(.inline(secret: app.secret))
        let channel = pusher.subscribeToPresenceChannel(channelName: "presence-a")
        channel.onMemberAdded { notes.add("\($0.userId) \($0.userInfo ?? "none")") }
        try await pusher.connected()
        try await channel.subscribed()
        channel.onMemberRemoved { notes.add("no \($0.userId) \($0.userInfo ?? "none")") }
        func send(_ event: String) async throws {
            let text = """
                {"event":"pusher_internal:\(event)","channel":"presence-a",\
                "data":"{\\"user_id\\":123,\\"user_info\\":\\"x\\"}"}
                """
            try await app.control("send", ["text": .string(text)])
        }
        try await send("member_added")
        #expect(await notes.wait(count: 1) == ["123 x"])
        #expect(channel.findMember(userId: "123")?.info == "x")
        try await send("member_removed")
        #expect(await notes.wait(count: 2).last == "no 123 x")
        #expect(channel.findMember(userId: "123") == nil)
    }

    @Test func theNumberOfSubscribersIsReported() async throws {
        let app = try await PusherApp(["subscription_count": true])
        let notes = Notes()
        let pusher = app.pusher()
        let channel = pusher.subscribe(
            "a", onSubscriptionCountChanged: { notes.add("count \($0)") })
        channel.onSubscriptionCountChanged { notes.add("again \($0)") }
        channel.bind(eventName: "pusher:subscription_count") { (event: PusherEvent) in
            notes.add(event.data ?? "")
        }
        pusher.connect()
        await notes.wait(for: "count 1")
        await notes.wait(for: "again 1")
        await notes.wait(for: #"{"subscription_count":1}"#)
        #expect(channel.subscriptionCount == 1)
    }

    // MARK: The user

    @Test func theUserIsSignedIn() async throws {
        let app = try await PusherApp()
        try await app.control("user", ["user_id": "u-17", "watchlist": ["u-3"]])
        let notes = Notes()
        let pusher = app.pusher {
            $0.userAuthMethod = .endpoint(authEndpoint: app.userAuthEndpoint)
        }
        #expect(pusher.user.userId == nil)
        pusher.user.onSignedIn { id, data in notes.add("\(id) \(data.contains("u-17"))") }
        pusher.user.onWatchlist { notes.add("\($0.name) \($0.userIds) \($0.isOnline)") }
        pusher.user.bind(eventName: "message") { notes.add("named \($0.data ?? "")") }
        let all = pusher.user.bind { notes.add("all \($0.eventName)") }
        pusher.connect()
        #expect(try await pusher.signedIn() == "u-17")
        await notes.wait(for: "u-17 true")
        #expect(pusher.user.userId == "u-17")
        try await app.publish("#server-to-user-u-17", "message", "hello")
        await notes.wait(for: "all message")
        #expect(notes.all.contains("named hello"))
        pusher.user.unbind(callbackId: all)

        let friend = app.pusher {
            $0.userAuthMethod = .authorizer { socketID in
                let answer = try await REST(app.userAuthEndpoint, options: .patient).post(
                    app.userAuthEndpoint,
                    body: .bytes(
                        Array("socket_id=\(socketID)&user_id=u-3".utf8),
                        type: "application/x-www-form-urlencoded")
                ).json
                return PusherUserAuth(
                    auth: answer?["auth"]?.stringValue ?? "",
                    userData: answer?["user_data"]?.stringValue ?? "")
            }
        }
        try await app.control("user", [:])
        friend.connect()
        #expect(try await friend.signedIn() == "u-3")
        await notes.wait(for: #"online ["u-3"] true"#)
        friend.disconnect()
        await notes.wait(for: #"offline ["u-3"] false"#)
        pusher.user.unbindAll()
        // After a reconnect the user is signed in again.
        try await app.control("close", ["code": 4200])
        try await app.received("pusher:signin", count: 3)
        #expect(try await pusher.signedIn() == "u-17" || pusher.user.userId != nil)
    }

    /// One function signs the user in, and the endpoint authorizes the channels.
    @Test func aRefusedSignInIsReported() async throws {
        let app = try await PusherApp()
        try await app.control("auth", ["mode": "deny", "body": "no", "channel": "(user)"])
        let notes = Notes()
        let pusher = app.pusher(.endpoint(authEndpoint: app.authEndpoint)) {
            $0.userAuthMethod = .endpoint(authEndpoint: app.userAuthEndpoint)
        }
        pusher.user.onSignInFailed {
            notes.add("\($0.error.response?.status ?? 0) \($0.body ?? "")")
        }
        pusher.connect()
        await #expect(throws: RealtimeError.self) { try await pusher.signedIn() }
        #expect(await notes.wait(count: 1) == ["403 no"])
        let channel = pusher.subscribe("private-a")
        try await channel.subscribed()
    }

    @Test func theMethodsOfUserAndChannelsAreIndependent() async throws {
        let app = try await PusherApp()
        let pusher = app.pusher(.endpoint(authEndpoint: app.authEndpoint)) {
            $0.userAuthMethod = .authorizer { _ in throw RealtimeError(.auth, "not today") }
        }
        let channel = pusher.subscribe("private-a")
        try await pusher.connected()
        try await channel.subscribed()
        let error = await #expect(throws: RealtimeError.self) { try await pusher.signedIn() }
        #expect(error?.message.contains("not today") == true)
        let second = app.pusher(.authorizer { _, _ in throw RealtimeError(.auth, "never") }) {
            $0.userAuthMethod = .endpoint(authEndpoint: app.userAuthEndpoint)
        }
        second.connect()
        try await second.signedIn()
    }

    @Test func signingOutIsForAllConnections() async throws {
        let app = try await PusherApp()
        try await app.control("user", ["user_id": "u-17"])
        let (notes, user) = (Notes(), JSONValue.string("#server-to-user-u-17"))
        let method = PusherUserAuthMethod.endpoint(authEndpoint: app.userAuthEndpoint)
        let pusher = app.pusher { $0.userAuthMethod = method }
        pusher.signOut()
        try await pusher.connected()
        #expect(try await pusher.signedIn() == "u-17")
        pusher.user.bind { (event: PusherEvent) in notes.add("user \(event.eventName)") }
        // The server answers in order: it has subscribed the user's channel.
        let channel = pusher.subscribe("a")
        try await channel.subscribed()
        pusher.signOut()
        try await pusher.subscribe("b").subscribed()
        #expect(pusher.user.userId == nil)
        try await app.wait(["event": "pusher:unsubscribe", "channel": user])
        try await app.control("close", ["code": 4200])
        try await app.wait(
            ["what": "in", "event": "pusher:subscribe", "channel": "a", "count": 2])
        channel.bind(eventName: "mail") { (_: PusherEvent) in notes.add("channel mail") }
        try await channel.subscribed()
        try await app.control("publish", ["channel": user, "event": "mail", "data": 1])
        try await app.publish("a", "mail")
        #expect(await notes.wait(count: 1) == ["channel mail"] && pusher.user.userId == nil)
        try await pusher.signedIn()
    }

    /// What is reported of the earlier sign-in does not end the wait for the next one.
    @Test func signingInDirectlyAfterSigningOut() async throws {
        let app = try await PusherApp()
        try await app.control("user", ["user_id": "u-17"])
        let method = PusherUserAuthMethod.endpoint(authEndpoint: app.userAuthEndpoint)
        let pusher = app.pusher { $0.userAuthMethod = method }
        try await pusher.connected()
        try await pusher.signedIn()
        for round in 0..<30 {
            pusher.signOut()
            #expect(pusher.user.userId == nil)
            // A sign-in that is under way in every other round.
            if round.isMultiple(of: 2) {
                pusher.signIn()
                pusher.signOut()
            }
            #expect(try await pusher.signedIn() == "u-17")
            #expect(pusher.user.userId == "u-17")
        }
    }

    @Test func signingOutEndsTheWait() async throws {
        let app = try await PusherApp()
        try await app.control("auth", ["mode": "hang"])
        let method = PusherUserAuthMethod.endpoint(authEndpoint: app.userAuthEndpoint)
        let pusher = app.pusher { $0.userAuthMethod = method }
        try await pusher.connected()
        let signingIn = Task { try await pusher.signedIn() }
        try await app.control("wait_held")
        pusher.signOut()
        let error = await #expect(throws: RealtimeError.self) { try await signingIn.value }
        #expect(error?.code == .cancelled)
        #expect(pusher.connection.connectionState == .connected)
    }

    // MARK: Push interests

    @MainActor private final class Device: PusherDelegate {
        let notes = Notes()

        func registeredForPushNotifications(clientId: String) { notes.add("registered") }
        func failedToRegisterForPushNotifications(response: HTTPResponse?, responseBody: String?) {
            notes.add("not registered \(response?.status ?? 0) \(responseBody ?? "none")")
        }
        func subscribedToInterest(name: String) { notes.add("subscribed \(name)") }
        func subscribedToInterests(interests: [String]) { notes.add("interests \(interests)") }
        func unsubscribedFromInterest(name: String) { notes.add("unsubscribed \(name)") }
    }

    @MainActor @Test func interestsAreSubscribed() async throws {
        let app = try await PusherApp()
        let device = Device()
        let pusher = app.pusher { $0.pushURL = "http://127.0.0.1:\(PusherApp.port)/push" }
        pusher.delegate = device
        let push = pusher.nativePusher
        let changes = Notes()
        push.onRegistration { if case .success = $0 { changes.add("registered") } }
        push.onChange { change, error in changes.add("\(change) \(error == nil)") }
        // Waits until the device is registered.
        push.subscribe(interestName: "donuts")
        push.register(deviceToken: [0x0A, 0xFF])
        push.setSubscriptions(interests: ["a", "b"])
        push.unsubscribe(interestName: "donuts & more/less")
        await device.notes.wait(count: 4)
        #expect(
            device.notes.all == [
                "registered", "subscribed donuts", #"interests ["a", "b"]"#,
                "unsubscribed donuts & more/less",
            ])
        await changes.wait(count: 4)
        let requests = try await app.control("log", ["what": "push"])
        #expect(requests[0]?["body"]?["token"]?.stringValue == "0aff")
        #expect(requests[0]?["body"]?["platform_type"]?.stringValue == "apns")
        #expect(requests.arrayValue?.count == 4)
    }

    @MainActor @Test func aRefusedRegistrationIsReported() async throws {
        let app = try await PusherApp()
        let device = Device()
        let pusher = app.pusher { $0.pushURL = "http://127.0.0.1:\(PusherApp.port)/push" }
        pusher.delegate = device
        try await app.control("push", ["status": 422, "body": "bad token"])
        pusher.nativePusher.register(deviceToken: [1])
        #expect(await device.notes.wait(count: 1) == ["not registered 422 bad token"])
    }
}
