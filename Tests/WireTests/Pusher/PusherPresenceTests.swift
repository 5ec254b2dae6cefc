import Testing
import Wire

/// docs/pusher-rules.md, U9.
@Suite struct PusherPresenceTests {
    private func read<Result>(
        _ json: String, _ body: (PusherData) throws(RealtimeError) -> Result
    ) throws(RealtimeError) -> Result {
        let bytes = Array(json.utf8)
        return try bytes.withUnsafeBufferPointer { bytes throws(RealtimeError) in
            try body(PusherData(.text, UnsafeRawBufferPointer(bytes)))
        }
    }

    /// The members as `id=info`.
    private func members(_ json: String) throws -> [String] {
        let table = try read(json) { data throws(RealtimeError) in try PusherPresenceTable(data) }
        #expect(table.count == table.members.count)
        return table.members.map { shown($0) }
    }

    private func shown(_ member: PusherMember) -> String {
        member.id + (member.info.map { "=" + String(decoding: $0, as: UTF8.self) } ?? "")
    }

    @Test func aTable() throws {
        let json =
            #"{"presence":{"count":2,"ids":["u-3","u-17"],"#
            + #""hash":{"u-3":{"name": "Ann"},"u-17":null}}}"#
        #expect(try members(json) == [#"u-3={"name":"Ann"}"#, "u-17"])
    }

    @Test func idsAndHashMayDiffer() throws {
        #expect(try members(#"{"presence":{"hash":{"a":1,"b":"x"}}}"#) == ["a=1", "b=\"x\""])
        #expect(try members(#"{"presence":{"ids":["a",7,"a",null]}}"#) == ["a", "7"])
        #expect(
            try members(#"{"presence":{"ids":["c",7],"hash":{"7":{},"a":1}}}"#)
                == ["7={}", "a=1", "c"])
        #expect(try members(#"{"presence":{"hash":{"a":1,"a":2}}}"#) == ["a=2"])
        // PHP's empty object.
        #expect(try members(#"{"presence":{"count":0,"ids":[],"hash":[]}}"#) == [])
    }

    /// An array of PHP is a list in JSON if its keys are 0, 1 and so on, and else an object.
    @Test func listsOfPHP() throws {
        let infos = #""hash":[{"name":"Ann"},null,{"name":"Bo"}]"#
        let members = [#"0={"name":"Ann"}"#, "1", #"2={"name":"Bo"}"#]
        #expect(try self.members(#"{"presence":{\#(infos)}}"#) == members)
        #expect(try self.members(#"{"presence":{"ids":["0","1","2"],\#(infos)}}"#) == members)
        #expect(try self.members(#"{"presence":{"ids":[0,1,2],\#(infos)}}"#) == members)
        // A list is in the order of its keys, whatever that of the ids.
        #expect(try self.members(#"{"presence":{"ids":["2","0",1],\#(infos)}}"#) == members)
        #expect(
            try self.members(#"{"presence":{"ids":["1","0"],"hash":["a","b"]}}"#)
                == [#"0="a""#, #"1="b""#])
        // Without the keys: in the order of the ids.
        #expect(
            try self.members(#"{"presence":{"ids":["u-3",7,"u-1"],\#(infos)}}"#)
                == [#"u-3={"name":"Ann"}"#, "7", #"u-1={"name":"Bo"}"#])
        #expect(try self.members(#"{"presence":{"ids":["9"],"hash":[1]}}"#) == ["9=1"])
        #expect(
            try self.members(#"{"presence":{"ids":["9","8"],"hash":[1]}}"#) == ["0=1", "9", "8"])
        #expect(
            try self.members(#"{"presence":{"ids":{"0":"a","2":"b"},"hash":{"a":1}}}"#)
                == ["a=1", "b"])
    }

    @Test(arguments: ["{}", "[]", "null", "1", #"{"presence":null}"#, #"{"presence":{}}"#])
    func withoutPresenceDataTheTableIsEmpty(json: String) throws {
        #expect(try members(json) == [])
        #expect(try PusherPresenceTable(PusherData.none).members == [])
    }

    @Test func textThatIsNotJSONIsRefused() {
        #expect(throws: RealtimeError.self) { try members("{") }
    }

    @Test func addedAndRemovedMembers() throws {
        func member(_ json: String) throws -> String {
            try read(json) { data throws(RealtimeError) in shown(try PusherMember(data)) }
        }
        #expect(
            try member(#"{"user_id":"u-9","user_info":{"name":"Bo"}}"#) == #"u-9={"name":"Bo"}"#)
        #expect(try member(#"{"user_id":9}"#) == "9")
        #expect(try member(#"{"user_id":9,"user_info":null}"#) == "9")
        for json in ["{}", "null", "[]", #"{"user_id":null}"#, #"{"user_id":""}"#, "x"] {
            #expect(throws: RealtimeError.self) { try member(json) }
        }
    }

    @Test func oneMemberForEachID() {
        var table = PusherPresenceTable()
        for member in [
            PusherMember(id: "a", info: nil), PusherMember(id: "b", info: nil),
            PusherMember(id: "a", info: [0x31]),
        ] { table.insert(member) }
        #expect(table.members.map { shown($0) } == ["a=1", "b"])
        #expect(table["a"]?.info == [0x31])
        let removed = [table.remove("a"), table.remove("a")]
        #expect(removed[0]?.info == [0x31] && removed[1] == nil)
        #expect(table.count == 1)
        table.removeAll()
        #expect(table.members.isEmpty)
    }

    /// Members of a megabyte each.
    @Test func theBytesOfMembersAreLimited() {
        var table = PusherPresenceTable()
        let info = [UInt8](repeating: 0x31, count: (1 << 20) - 2)
        let areKept = (10..<30).map { table.insert(PusherMember(id: "\($0)", info: info)) }
        #expect(areKept.count { $0 } == 16 && table.count == 16)
        // One that is there may become smaller, but not larger.
        let larger = table.insert(PusherMember(id: "10", info: info + [0x31]))
        let smaller = table.insert(PusherMember(id: "11", info: nil))
        let next = table.insert(PusherMember(id: "30", info: Array(info.dropLast(2))))
        #expect(!larger && smaller && next && table.count == 17)
        _ = table.remove("12")
        #expect(table.remove("13") != nil && table["14"]?.info?.count == info.count)
    }
}
