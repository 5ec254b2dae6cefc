import Testing
import Wire

@Suite struct KeyedFileTests {
    @Test func writtenIDsAreRead() throws {
        var file = KeyedFile(.eventIDs)
        let empty = file.bytes.count
        let ids = [
            ("http://a.test:80/x?y=1", "7"), ("key", "ein Leerzeichen, % und é"), ("ü", "\u{1}"),
        ]
        for (key, id) in ids { file[key] = id }
        let read = try KeyedFile(parsing: file.bytes, .eventIDs)
        #expect(read == file)
        for (key, id) in ids { #expect(read[key] == id) }
        #expect(read["other"] == nil)
        #expect(ids.reduce(empty) { $0 + KeyedFile.count($1.0, $1.1) } == file.bytes.count)
    }

    @Test func anEmptyIDRemovesTheKey() throws {
        var file = KeyedFile(.eventIDs)
        file["a"] = "1"
        file["a"] = ""
        #expect(file == KeyedFile(.eventIDs))
        #expect(KeyedFile.count("a", "") == 0)
        #expect(try KeyedFile(parsing: file.bytes, .eventIDs) == file)
    }

    @Test(arguments: [
        "", "\n", "librealtime event ids 2\n", "librealtime event ids 1", "x",
        "librealtime event ids 1\nkey\n", "librealtime event ids 1\nkey \n",
        "librealtime event ids 1\n id\n", "librealtime event ids 1\nkey id more\n",
        "librealtime event ids 1\nkey id\nkey other\n", "librealtime event ids 1\n\n",
        "librealtime event ids 1\nkey %4\n", "librealtime event ids 1\nkey %zz\n",
        "librealtime event ids 1\nkey %+1\n", "librealtime event ids 1\nkey %ff\n",
        "librealtime event ids 1\nkey\tid 1\n",
        // These would end the header that sends the id.
        "librealtime event ids 1\nkey 1%0D%0AX-Evil:%20yes\n",
        "librealtime event ids 1\nkey 1%0A2\n", "librealtime event ids 1\nkey 1%002\n",
    ])
    func damagedFilesAreRefused(_ text: String) {
        let error = #expect(throws: RealtimeError.self) {
            try KeyedFile(parsing: Array(text.utf8), .eventIDs)
        }
        #expect(error?.code == .store)
    }

    @Test(arguments: [
        ("", true), ("librealtime ev", true), ("librealtime event ids 1", true),
        ("librealtime event ids 1\n", true), ("librealtime event ids 1\nwhat?", true),
        ("\n", false), ("librealtime event ids 2\n", false), ("librealtime event ids 12", false),
        ("text", false),
    ])
    func filesOfOthersAreKnown(_ text: String, _ isOurs: Bool) {
        #expect(OwnFileFormat.eventIDs.isOurs(Array(text.utf8)) == isOurs)
    }

    @Test(arguments: [
        ("", true), ("librealtime doc", true), ("librealtime documents 2\n", true),
        ("librealtime dogument\0 1\n", true), (String(repeating: "\0", count: 22), true),
        ("librealtime dog", false), (String(repeating: "\0", count: 21), false),
        ("librealtime login tokens 1\n", false), ("librealtime event ids 1\n", false),
        ("libreoffice documents\n", false), ("Notes of librealtime documents", false),
    ])
    func damagedBeginningsOfDocumentsAreKnown(_ text: String, _ isOurs: Bool) {
        #expect(OwnFileFormat.documents.isOurs(Array(text.utf8)) == isOurs)
    }

    @Test func keysAreComparedByteForByte() throws {
        var file = KeyedFile(.eventIDs)
        file["caf\u{E9}"] = "1"
        file["cafe\u{301}"] = "2"
        let read = try KeyedFile(parsing: file.bytes, .eventIDs)
        #expect(read["caf\u{E9}"] == "1" && read["cafe\u{301}"] == "2")
    }

    @Test func everyCutIsDetectedOrHarmless() throws {
        var file = KeyedFile(.eventIDs)
        file["a"] = "1"
        file["b"] = "22"
        let bytes = file.bytes
        for end in 0..<bytes.count {
            let cut = try? KeyedFile(parsing: Array(bytes[..<end]), .eventIDs)
            #expect(cut == nil || bytes[end - 1] == UInt8(ascii: "\n"))
        }
    }
}
