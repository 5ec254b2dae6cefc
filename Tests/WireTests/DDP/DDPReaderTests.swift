import Testing
import Wire

struct DDPReaderTests {
    private func read(_ text: String) -> DDPFrame {
        var reader = DDPReader()
        return Array(text.utf8).withUnsafeBytes { reader.read($0) }
    }

    private func nested(_ depth: Int) -> String {
        String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }

    /// The server has counted it, and what waits for it must end.
    @Test(arguments: [129, 100_000])
    func messagesThatAreNestedTooDeeplyCount(depth: Int) {
        let deep = nested(depth)
        for text in [
            #"{"msg":"added","collection":"c","id":"-","fields":{"x":\#(deep)}}"#,
            #"{"msg":"new","x":\#(deep)}"#, #"{"msg":"result","result":\#(deep)}"#,
        ] {
            guard case .ignored(_, isMessage: true) = read(text) else {
                Issue.record("\(read(text))")
                continue
            }
        }
        for text in [deep, #"{"msg":"ping","id":\#(deep)}"#, #"{"msg":7,"x":\#(deep)}"#] {
            #expect(!read(text).counts)
        }
        let result = read(#"{"msg":"result","id":"1","result":\#(deep)}"#)
        if case .message(.result(id: "1", .failure(let error))) = result {
            #expect(error.code == "invalid-result")
        } else {
            Issue.record("\(result)")
        }
        let nosub = read(#"{"msg":"nosub","id":"s","error":{"error":1,"details":\#(deep)}}"#)
        if case .message(.nosub(id: "s", let error?)) = nosub {
            #expect(error.code == "invalid-error" && error.kind == .server)
        } else {
            Issue.record("\(nosub)")
        }
    }

    /// A message whose values take far more memory than its text.
    @Test func valuesAndNamesCountAsBytes() {
        let limit = 8 << 20
        let most = limit / 64
        // The message itself has the object, its member's name and the list.
        for (count, isRead) in [(most - 5, true), (most - 4, false)] {
            let list = String(repeating: "1,", count: count - 1) + "1"
            let text = #"{"msg":"ready","subs":[\#(list)]}"#
            var reader = DDPReader(maximumBytes: limit)
            let frame = Array(text.utf8).withUnsafeBytes { reader.read($0) }
            if case .tooLarge(let error) = frame {
                #expect(!isRead && error.code == .tooLarge && !frame.counts)
                #expect(error.message == "JSON with more than \(most) values and names")
            } else {
                #expect(isRead)
            }
        }
    }

    /// It ends what it answers, which loses less than the connection.
    @Test func anAnswerThatIsTooLargeFailsAlone() {
        func large(_ opening: String, _ closing: String) -> DDPFrame {
            let list = String(repeating: "1,", count: 70_000) + "1"
            var reader = DDPReader(maximumBytes: 4 << 20)
            return Array("\(opening)[\(list)]\(closing)".utf8).withUnsafeBytes { reader.read($0) }
        }
        let result = large(#"{"msg":"result","result":"#, #","id":"\u0031"}"#)
        guard case .message(.result(id: "1", .failure(let error))) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(error.code == "invalid-result")
        #expect(error.reason?.contains("maxMessageBytes") == true)
        let nosub = large(#"{"msg":"nosub","id":"s","error":{"details":"#, "}}")
        guard case .message(.nosub(id: "s", let refusal?)) = nosub else {
            Issue.record("\(nosub)")
            return
        }
        #expect(refusal.code == "invalid-error")
        let unknown = large(#"{"msg":"news","all":"#, "}")
        guard case .ignored(_, isMessage: true) = unknown else {
            Issue.record("\(unknown)")
            return
        }
        for opening in [#"{"msg":"added","id":"1","all":"#, #"{"msg":"updated","methods":"#] {
            guard case .tooLarge = large(opening, "}") else {
                Issue.record("\(opening) is read")
                return
            }
        }
    }

    /// Not even to find the id of what it answers.
    @Test func aLargeMessageThatIsNestedTooDeeplyIsNotRead() {
        let text = #"{"msg":"result","id":"1","result":\#(nested(100_000))}"#
        var reader = DDPReader(maximumBytes: 1 << 20)
        let frame = Array(text.utf8).withUnsafeBytes { reader.read($0) }
        guard case .ignored(_, isMessage: false) = frame else {
            Issue.record("\(frame)")
            return
        }
    }

    @Test func whatIsNotJSONDoesNotCount() {
        for text in ["", "{", #"{"msg":"added""#, #"{"msg":"ready","subs":[1e}"#] {
            #expect(!read(text).counts)
        }
    }
}
