@testable import Session
import Testing
import Wire

/// The members of presence channels.
struct PusherPresenceTests {
    private static let own = #"{"user_id":"u-3","user_info":{"name":"Ann"}}"#
    private static let table =
        #"{"presence":{"count":2,"ids":["u-3","u-17"],"hash":{"u-3":{"name":"Ann"},"u-17":null}}}"#

    private func joined() throws -> PusherModel {
        let model = try PusherModel.connected()
        _ = try model.join("presence-lobby", data: Self.table, own: Self.own)
        return model
    }

    @Test func `success gives the table and my id`() throws {
        let model = try joined()
        let members = try #require(model.members)
        #expect(members.table.members.map { $0.id } == ["u-3", "u-17"])
        #expect(members.table["u-3"]?.info == Array(#"{"name":"Ann"}"#.utf8))
        #expect(members.myID == "u-3")
    }

    @Test func `a numeric user id is a text`() throws {
        let model = try PusherModel.connected()
        _ = try model.join(
            "presence-lobby", data: #"{"presence":{"ids":[7],"hash":{}}}"#, own: #"{"user_id":7}"#)
        #expect(model.members?.myID == "7")
        #expect(model.members?.table["7"] != nil)
        #expect(
            model.event("pusher_internal:member_added", "presence-lobby", data: #"{"user_id":8}"#)
                == ["1 has 7,8", "1 added 8", "event pusher:member_added on 1"])
    }

    @Test func `a member comes`() throws {
        let model = try joined()
        #expect(
            model.event(
                "pusher_internal:member_added", "presence-lobby",
                data: #"{"user_id":"u-9","user_info":{"name":"Bo"}}"#) == [
                    "1 has u-3,u-17,u-9", "1 added u-9", "event pusher:member_added on 1",
                ])
    }

    @Test func `a member that is known gets new info, and is not reported again`() throws {
        let model = try joined()
        #expect(
            model.event(
                "pusher_internal:member_added", "presence-lobby",
                data: #"{"user_id":"u-17","user_info":2}"#) == ["1 has u-3,u-17"])
        #expect(model.members?.table["u-17"]?.info == Array("2".utf8))
    }

    @Test func `a member goes, and is reported with its info`() throws {
        let model = try joined()
        #expect(
            model.event(
                "pusher_internal:member_removed", "presence-lobby", data: #"{"user_id":"u-3"}"#)
                == [
                    "1 has u-17", #"1 removed u-3 {"name":"Ann"}"#,
                    "event pusher:member_removed on 1",
                ])
    }

    @Test func `an unknown member that goes is ignored`() throws {
        let model = try joined()
        #expect(
            model.event(
                "pusher_internal:member_removed", "presence-lobby", data: #"{"user_id":"u-4"}"#)
                == [])
    }

    @Test(arguments: ["{}", "1", #""nonsense""#, "null"])
    func `a member without an id is ignored`(data: String) throws {
        let model = try joined()
        #expect(model.event("pusher_internal:member_added", "presence-lobby", data: data) == [])
        #expect(model.event("pusher_internal:member_removed", "presence-lobby", data: data) == [])
    }

    @Test func `members that come before the table are part of it, or gone`() throws {
        let model = try PusherModel.connected()
        _ = try model.subscribe("presence-lobby")
        _ = model.authorize(channelData: Self.own)
        #expect(
            model.event(
                "pusher_internal:member_added", "presence-lobby", data: #"{"user_id":"u-9"}"#) == []
        )
    }

    @Test func `members of other channels are ignored`() throws {
        let model = try PusherModel.connected()
        _ = try model.join("chat")
        for channel in ["chat", "presence-other"] {
            #expect(
                model.event("pusher_internal:member_added", channel, data: #"{"user_id":"u"}"#)
                    == [])
        }
    }

    @Test func `after a drop there are no members, and the new table replaces the old one`() throws
    {
        let model = try joined()
        #expect(
            model.end(after: .seconds(5)) == [
                "1 idle", "1 has ", "connected → reconnecting in 0 s",
            ])
        #expect(model.members?.myID == nil)
        _ = try model.pass()
        _ = try model.establish("2.2")
        _ = model.authorize(channelData: Self.own)
        _ = model.succeed("presence-lobby", data: #"{"presence":{"ids":["u-3"]}}"#)
        #expect(model.members?.table.members.map { $0.id } == ["u-3"])
    }

    @Test func `a table that cannot be read is empty`() throws {
        let model = try PusherModel.connected()
        _ = try model.join("presence-lobby", data: #""nonsense""#, own: Self.own)
        #expect(model.members?.table.count == 0)
    }

    /// Neither the session's table nor that of the application is copied, except once, when the
    /// application has got the whole table.
    @Test func `a member that comes or goes does not cost a copy of the others`() throws {
        let ids = (0..<1000).map { "\"m\($0)\"" }.joined(separator: ",")
        let model = try PusherModel.connected()
        let id = try model.join(
            "presence-lobby", data: #"{"presence":{"ids":[\#(ids)]}}"#, own: Self.own)
        func storage() -> [UnsafeRawPointer?] {
            [model.session.channels[id]?.presence, model.members?.table].map { table in
                let slots = table.flatMap { Mirror(reflecting: $0).descendant("table", "slots") }
                return (slots as? [PusherMember?])?.withUnsafeBytes { $0.baseAddress }
            }
        }
        var (before, moves) = (storage(), [0, 0])
        #expect(before[0] != nil && before[0] == before[1])
        for number in 0..<100 {
            for change in ["member_added", "member_removed"] {
                _ = model.event(
                    "pusher_internal:\(change)", "presence-lobby",
                    data: #"{"user_id":"new\#(number)"}"#)
                let after = storage()
                for table in 0..<2 where after[table] != before[table] { moves[table] += 1 }
                before = after
            }
        }
        // An array that grows moves as well.
        #expect(moves.allSatisfy { $0 <= 2 }, "\(moves) of 200")
        #expect(model.members?.table.count == 1000)
    }

    @Test func `the members have a limit`() throws {
        let limit = PusherPresenceTable.memberLimit
        let ids = (0...limit).map { "\"m\($0)\"" }.joined(separator: ",")
        let model = try PusherModel.connected()
        _ = try model.join(
            "presence-lobby", data: #"{"presence":{"ids":[\#(ids)]}}"#, own: Self.own)
        #expect(model.members?.table.count == limit)
        #expect(
            model.event("pusher_internal:member_added", "presence-lobby", data: #"{"user_id":"x"}"#)
                == [])
    }
}
