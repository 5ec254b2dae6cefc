import Testing
import Wire

@testable import Documents

struct ModifierTests {
    private static let document = """
        {"n":5,"s":"x","l":[1,2,3],"o":{"k":1},"os":[{"k":2},{"k":1}],"z":null}
        """

    /// The document after the modifier; nil if it is refused.
    private func modified(_ modifier: String, _ document: String = document) throws -> EJSON? {
        guard case .object(let fields) = try value(document) else { return nil }
        let id = try #require(DocumentID(.string("m")))
        let parsed = try value(modifier)
        do throws(RealtimeError) {
            return .object(try Modifier(parsed, now: 1234).apply(to: fields, id: id))
        } catch {
            #expect(error.code == .invalidArgument)
            return nil
        }
    }

    @Test(
        arguments: [
            (#"{"$set":{"n":6,"o.j":[{"a":1}]}}"#, #"{"n":6,"o":{"k":1,"j":[{"a":1}]}}"#),
            (#"{"$set":{"a.b.c":1}}"#, #"{"a":{"b":{"c":1}}}"#),
            (#"{"$set":{"l.1":9,"l.4":8}}"#, #"{"l":[1,9,3,null,8]}"#),
            (#"{"$set":{"l.05":8}}"#, #"{"l":[1,2,3,null,null,8]}"#),
            (#"{"$set":{"os.2.k":0}}"#, #"{"os":[{"k":2},{"k":1},{"k":0}]}"#),
            (#"{"$set":{"_id":"m","n":6}}"#, #"{"n":6}"#),
            (
                #"{"$unset":{"n":1,"o.k":"","l.0":1,"no.way":1,"l.9":1}}"#,
                #"{"n":"-","o":{},"l":[null,2,3]}"#
            ),
            (#"{"$inc":{"n":-2,"new":3,"o.k":0.5}}"#, #"{"n":3,"new":3,"o":{"k":1.5}}"#),
            (#"{"$mul":{"n":3,"new":3}}"#, #"{"n":15,"new":0}"#),
            (#"{"$min":{"n":3,"o.k":2,"new":7}}"#, #"{"n":3,"new":7}"#),
            (#"{"$max":{"n":3,"o.k":2,"new":7}}"#, #"{"o":{"k":2},"new":7}"#),
            (#"{"$rename":{"n":"a.b","no":"x"}}"#, #"{"n":"-","a":{"b":5}}"#),
            (#"{"$rename":{"o":"o.k"}}"#, #"{"o":{"k":{"k":1}}}"#),
            (#"{"$rename":{"z":"s"}}"#, #"{"z":"-","s":null}"#),
            (#"{"$push":{"l":[4],"new":1}}"#, #"{"l":[1,2,3,[4]],"new":[1]}"#),
            (#"{"$push":{"l":{"$each":[9,8],"$position":1,"$slice":4}}}"#, #"{"l":[1,9,8,2]}"#),
            (#"{"$push":{"l":{"$each":[9],"$position":99,"$slice":-2}}}"#, #"{"l":[3,9]}"#),
            (#"{"$push":{"l":{"$each":[9],"$slice":0}}}"#, #"{"l":[]}"#),
            (#"{"$push":{"l":{"$each":[9],"$slice":-0.5}}}"#, #"{"l":[1,2,3,9]}"#),
            (
                #"{"$push":{"os":{"$each":[{"k":0}],"$sort":{"k":1},"$slice":2}}}"#,
                #"{"os":[{"k":0},{"k":1}]}"#
            ),
            (#"{"$addToSet":{"l":2,"os":{"k":2},"new":{"$each":[1,1]}}}"#, #"{"new":[1]}"#),
            (
                #"{"$addToSet":{"l":{"$each":[3,4]},"os":null}}"#,
                #"{"l":[1,2,3,4],"os":[{"k":2},{"k":1},null]}"#
            ),
            (#"{"$pop":{"l":-1,"os":1,"no":1}}"#, #"{"l":[2,3],"os":[{"k":2}]}"#),
            (#"{"$pull":{"l":2,"os":{"k":{"$gt":1}},"no":1}}"#, #"{"l":[1,3],"os":[{"k":1}]}"#),
            (#"{"$pull":{"l":{"$gt":1}}}"#, #"{"l":[1]}"#), (#"{"$pull":{"l":{"k":1}}}"#, "{}"),
            (#"{"$pullAll":{"l":[1,3,5],"os":[{"k":1}]}}"#, #"{"l":[2],"os":[{"k":2}]}"#),
            (
                #"{"$currentDate":{"n":true,"at":{"$type":"date"}}}"#,
                #"{"n":{"$date":1234},"at":{"$date":1234}}"#
            ),
            (#"{"$setOnInsert":{"n":7,"a.b":1}}"#, "{}"),
            (#"{"$inc":{"new":1},"$min":{"new":0}}"#, #"{"new":0}"#),
        ])
    func operators(modifier: String, changed: String) throws {
        guard case .object(var expected) = try value(Self.document),
            case .object(let changes) = try value(changed)
        else { return }
        for change in changes.fields {
            expected[change.name] = change.value == .string("-") ? nil : change.value
        }
        #expect(try modified(modifier) == .object(expected), "\(modifier)")
    }

    @Test(arguments: [#"{"a":1}"#, #"{"_id":"m","a":1}"#])
    func aPlainObjectReplaces(modifier: String) throws {
        #expect(try modified(modifier) == value(#"{"a":1}"#))
        #expect(try modified("{}") == value("{}"))
    }

    @Test(
        arguments: [
            "5", "[1]", "null", #"{"$foo":{"n":1}}"#, #"{"$set":{"n":1},"s":"y"}"#, #"{"$set":5}"#,
            #"{"$set":{"_id":"other"}}"#, #"{"$unset":{"_id":1}}"#, #"{"$rename":{"_id":"x"}}"#,
            #"{"$rename":{"n":"_id"}}"#, #"{"_id":"q","a":1}"#, #"{"$set":{"":1}}"#,
            #"{"$set":{"a..b":1}}"#, #"{"$set":{"a.":1}}"#, #"{"$set":{"a.$b":1}}"#,
            #"{"$set":{"a":{"$b":1}}}"#, #"{"$set":{"a":[{"b.c":1}]}}"#, #"{"a":{"$b":1}}"#,
            #"{"a.b":1}"#, #"{"$set":{"a\u0000":1}}"#, #"{"a\u0000":1}"#, #"{"$inc":{"n":"x"}}"#,
            #"{"$inc":{"s":1}}"#, #"{"$inc":{"z":1}}"#, #"{"$mul":{"s":1}}"#, #"{"$min":{"s":1}}"#,
            #"{"$max":{"z":1}}"#, #"{"$push":{"n":1}}"#, #"{"$push":{"z":1}}"#,
            #"{"$push":{"l":{"$each":5}}}"#, #"{"$push":{"l":{"$each":[9],"$position":-1}}}"#,
            #"{"$push":{"l":{"$each":[9],"$position":"1"}}}"#,
            #"{"$push":{"l":{"$each":[9],"$slice":"1"}}}"#,
            #"{"$push":{"os":{"$each":[{"k":0}],"$sort":{"k":1}}}}"#,
            #"{"$push":{"os":{"$each":[5],"$sort":{"k":1},"$slice":2}}}"#,
            #"{"$push":{"l":{"$each":[{"$a":1}]}}}"#, #"{"$addToSet":{"n":1}}"#,
            #"{"$addToSet":{"l":{"$each":1}}}"#, #"{"$addToSet":{"l":{"$a":1}}}"#,
            #"{"$pop":{"n":1}}"#, #"{"$pull":{"n":1}}"#, #"{"$pull":{"l":{"$foo":1}}}"#,
            #"{"$pullAll":{"l":1}}"#, #"{"$pullAll":{"n":[1]}}"#, #"{"$rename":{"n":"n"}}"#,
            #"{"$rename":{"n":5}}"#, #"{"$rename":{"l.0":"q"}}"#, #"{"$rename":{"n":"l.0"}}"#,
            #"{"$rename":{"n":"s.x"}}"#, #"{"$set":{"l.x":9}}"#, #"{"$set":{"l.0.a":9}}"#,
            #"{"$set":{"z.a":9}}"#, #"{"$set":{"n.a":9}}"#, #"{"$currentDate":{"at":1}}"#,
            #"{"$currentDate":{"at":{"$type":"timestamp"}}}"#, #"{"$bit":{"n":{"and":1}}}"#,
            #"{"$unset":{"l.0.a":1}}"#,
        ])
    func invalidOnesAreRefused(modifier: String) throws {
        #expect(try modified(modifier) == nil, "\(modifier)")
    }

    // MARK: Limits

    @Test func paddingIsLimited() throws {
        let most = 3 + Modifier.maximumPadding
        guard case .object(let changed)? = try modified("{\"$set\":{\"l.\(most)\":1}}"),
            case .array(let elements)? = changed["l"]
        else {
            Issue.record("the element is refused")
            return
        }
        #expect(elements.count == most + 1)
        #expect(try modified("{\"$set\":{\"l.\(most + 1)\":1}}") == nil)
        #expect(try modified(#"{"$set":{"l.99999999999999999999":1}}"#) == nil)
    }

    /// Renaming can put a deep object below other ones, again and again.
    @Test func depthIsLimited() throws {
        guard case .object(var fields) = try value(#"{"a":1}"#) else { return }
        let id = try #require(DocumentID(.string("m")))
        let deeper = try Modifier(
            value(#"{"$rename":{"a":"b.c.d"}}"#), now: 0)
        let back = try Modifier(value(#"{"$rename":{"b":"a"}}"#), now: 0)
        var steps = 0
        while let next = try? deeper.apply(to: fields, id: id), steps < 1000 {
            fields = try back.apply(to: next, id: id)
            steps += 1
        }
        #expect(steps == Modifier.maximumDepth / 2 - 1)
    }

    @Test func depthOfValuesIsLimited() throws {
        func modifier(_ levels: Int) -> EJSON {
            var deep: EJSON = .number(1)
            for _ in 0..<levels { deep = .array([deep]) }
            var fields = EJSONObject()
            fields["a"] = deep
            var modifier = EJSONObject()
            modifier["$set"] = .object(fields)
            return .object(modifier)
        }
        let id = try #require(DocumentID(.string("m")))
        _ = try Modifier(modifier(Modifier.maximumDepth - 1), now: 0)
            .apply(to: EJSONObject(), id: id)
        #expect(
            isInvalid {
                _ = try Modifier(modifier(Modifier.maximumDepth + 1), now: 0)
                    .apply(to: EJSONObject(), id: id)
            })
    }
}
