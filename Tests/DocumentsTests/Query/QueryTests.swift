import DocumentsReplayer
import Testing
import Wire

@testable import Documents

struct QueryTests {
    @Test(
        arguments: [
            (#"{"sort":{"v":1}}"#, "dicmajenbhpkofg"), (#"{"sort":{"v":-1}}"#, "gfokphbnejamcdi"),
            (#"{"sort":["v"]}"#, "dicmajenbhpkofg"),
            (#"{"sort":[["v","desc"]]}"#, "gfokphbnejamcdi"),
            (#"{"sort":[["v","asc"],["_id","desc"]]}"#, "idcmajenbphkofg"),
            (#"{"sort":{}}"#, "abcdefghijkmnop"), (#"{"skip":2,"limit":3}"#, "cde"),
            (#"{"skip":13}"#, "op"), (#"{"skip":20}"#, ""), (#"{"limit":0}"#, "abcdefghijkmnop"),
            (#"{"sort":{"_id":-1},"skip":1,"limit":2}"#, "on"), ("null", "abcdefghijkmnop"),
            (#"{"sort":null,"skip":null,"limit":1}"#, "a"),
        ])
    func orderAndRange(options: String, ids: String) throws {
        #expect(try find("{}", options) == ids, "\(options)")
    }

    @Test(
        arguments: [
            #"{"sort":5}"#, #"{"sort":{"a":"up"}}"#, #"{"sort":[5]}"#, #"{"sort":[["a",2]]}"#,
            #"{"sort":{"":1}}"#, #"{"sort":{"$a":1}}"#, #"{"skip":-1}"#, #"{"skip":1.5}"#,
            #"{"limit":-1}"#, #"{"limit":"x"}"#, #"{"limit":1e300}"#, "5", #"{"fields":5}"#,
            #"{"fields":{"a":1,"b":0}}"#, #"{"fields":{"a":1,"a.b":1}}"#,
            #"{"fields":{"a.b":1,"a":1}}"#, #"{"fields":{"a":2}}"#,
            #"{"fields":{"a":{"$slice":1}}}"#,
            #"{"fields":{"a.$":1}}"#, #"{"fields":{"a":0,"_id":1}}"#,
        ])
    func invalidOptionsAreRefused(options: String) {
        #expect(isInvalid { _ = try Query(selector: value("{}"), options: value(options)) })
    }

    @Test func theDocumentOfAnIDCannotBeSkipped() throws {
        #expect(try find(#""a""#, #"{"skip":1}"#) == "")
        #expect(try find(#"{"_id":"a","v":1}"#) == "a")
        #expect(try find(#"{"_id":"a"}"#, #"{"limit":1}"#) == "a")
    }

    @Test func numbersOfPathsAreLimited() {
        let paths = (0...SortOrder.maximumPaths).map { "\"p\($0)\"" }
        #expect(
            !isInvalid { _ = try SortOrder(value("[\(paths.dropLast().joined(separator: ","))]")) })
        #expect(isInvalid { _ = try SortOrder(value("[\(paths.joined(separator: ","))]")) })
    }

    /// Several keys are compared for one and the same element.
    @Test func severalPathsSortByOneElement() throws {
        let documents = """
            [{"_id":"a","l":[{"x":1,"y":3},{"x":0,"y":5}]},{"_id":"b","l":[{"x":0,"y":4}]},
            {"_id":"c","l":[{"x":0,"y":6},{"x":2,"y":0}]}]
            """
        #expect(try find("{}", #"{"sort":{"l.x":1,"l.y":1}}"#, in: documents) == "bac")
        #expect(try find("{}", #"{"sort":{"l.x":-1,"l.y":1}}"#, in: documents) == "cab")
        #expect(try find("{}", #"{"sort":{"l.0.y":1}}"#, in: documents) == "abc")
    }

    @Test(
        arguments: [
            (#"["n"]"#, "abc"), (#"[["n"]]"#, "abc"), (#"[["n","asc"]]"#, "abc"),
            (#"[["n",1]]"#, "abc"), (#"[["n",-1]]"#, "cba"), (#"[["n","desc"]]"#, "cba"),
            (#"["m",["n","desc"]]"#, "bac"), (#"[["m",-1],"n"]"#, "cab"), ("[]", "bca"),
            (#"["n",1]"#, "error"), (#"["n",["m",2]]"#, "error"), (#"[["n","down"]]"#, "error"),
            (#"[["n",1,2]]"#, "error"), ("[[]]", "error"), ("[[1]]", "error"), (#""n""#, "error"),
            (#"[""]"#, "error"), (#"["$n"]"#, "error"), (#"[["n",null]]"#, "error"),
        ])
    func formsOfASort(sort: String, ids: String) throws {
        let documents =
            #"[{"_id":"b","n":2,"m":0},{"_id":"c","n":3,"m":1},{"_id":"a","n":1,"m":0}]"#
        if ids == "error" {
            #expect(
                isInvalid { _ = try find("{}", #"{"sort":\#(sort)}"#, in: documents) }, "\(sort)")
        } else {
            #expect(try find("{}", #"{"sort":\#(sort)}"#, in: documents) == ids, "\(sort)")
        }
    }

    @Test func projectionIsAnotherNameOfFields() throws {
        let query = try query("{}", #"{"projection":{"a":1}}"#)
        let documents: [(DocumentID, EJSONObject)] = [(DocumentID("x"), ["a": 1, "b": 2])]
        let found = try query.results(of: documents)
        #expect(found == [Found(id: DocumentID("x"), fields: ["a": 1])])
        #expect(isInvalid { _ = try self.query("{}", #"{"projection":{"a":5}}"#) })
        #expect(isInvalid { _ = try self.query("{}", #"{"projection":{"a":1},"fields":{"b":1}}"#) })
        #expect(!isInvalid { _ = try self.query("{}", #"{"projection":{"a":1},"fields":null}"#) })
    }

    @Test(arguments: ["Sort", "sorts", "", "$sort", "transform"])
    func unknownOptionsAreRefused(name: String) throws {
        for value in ["1", "null"] {
            let options = EJSON.object([name: try EJSON(parsing: value)])
            do throws(RealtimeError) {
                _ = try Query(selector: [:], options: options)
                Issue.record("\(name) is accepted")
            } catch {
                #expect(error.code == .invalidArgument)
                #expect(error.message.hasPrefix("a query has no option \(name);"))
            }
        }
    }

    private func query(_ selector: String, _ options: String) throws -> Query {
        try Query(selector: value(selector), options: value(options))
    }

    /// Meteor refuses to sort by two lists. Here each counts with its first element.
    @Test func twoListsSortIndependently() throws {
        let documents = #"[{"_id":"a","x":[2,1],"y":[5]},{"_id":"b","x":[1,3],"y":[4,6,7]}]"#
        #expect(try find("{}", #"{"sort":{"x":1,"y":1}}"#, in: documents) == "ba")
        #expect(try find("{}", #"{"sort":{"x":1,"y":-1}}"#, in: documents) == "ba")
        #expect(try find("{}", #"{"sort":{"x":-1}}"#, in: documents) == "ba")
    }

    @Test(
        arguments: [
            (#"{"a":1}"#, #"{"a":{"b":1,"c":[{"d":1,"e":2},5]}}"#),
            (#"{"a.b":1}"#, #"{"a":{"b":1}}"#),
            (#"{"a.c.d":true}"#, #"{"a":{"c":[{"d":1}]}}"#), (#"{"z.y":1}"#, "{}"),
            (#"{"a.b.x":1}"#, #"{"a":{}}"#), (#"{"a":0}"#, #"{"z":5}"#),
            (#"{"a.c.d":0}"#, #"{"a":{"b":1,"c":[{"e":2},5]},"z":5}"#),
            (#"{"a.b.x":false}"#, #"{"a":{"b":1,"c":[{"d":1,"e":2},5]},"z":5}"#),
            (#"{"_id":1}"#, "{}"), (#"{"_id":0,"z":1}"#, #"{"z":5}"#),
            (#"{"_id":0}"#, #"{"a":{"b":1,"c":[{"d":1,"e":2},5]},"z":5}"#),
            ("{}", #"{"a":{"b":1,"c":[{"d":1,"e":2},5]},"z":5}"#),
        ])
    func fieldsAreChosen(fields: String, result: String) throws {
        guard case .object(let document) = try value(#"{"a":{"b":1,"c":[{"d":1,"e":2},5]},"z":5}"#)
        else { return }
        let projection = try Projection(value(fields))
        #expect(.object(projection.apply(document)) == (try value(result)), "\(fields)")
        #expect(projection.includesID == !fields.hasPrefix(#"{"_id":0"#))
    }
}

struct ListChangeTests {
    private func steps(_ old: String, _ new: String) throws -> [String] {
        listChanges(from: try found(old), to: try found(new)).map { change in
            switch change {
            case .added(let id, _, let before): "+\(id.wire) \(before?.wire ?? "")"
            case .changed(let id, let fields, let cleared):
                "*\(id.wire) \(EJSON.object(fields).text) \(cleared.joined())"
            case .moved(let id, let before): ">\(id.wire) \(before?.wire ?? "")"
            case .removed(let id): "-\(id.wire)"
            }
        }
    }

    /// An example of the order by ids (M17).
    @Test func stepsAreInMeteorsOrder() throws {
        let old = """
            [{"_id":"a","n":0},{"_id":"b","n":1},{"_id":"c","n":2},{"_id":"d","n":3},
            {"_id":"e","n":4}]
            """
        let new = """
            [{"_id":"c","n":0},{"_id":"a","n":9},{"_id":"x"},{"_id":"e","n":4},{"_id":"b","n":1}]
            """
        #expect(
            try steps(old, new) == [
                "-d", #"*c {"n":0} "#, ">c a", #"*a {"n":9} "#, "+x b", ">e b",
            ])
    }

    @Test func equalListsHaveNoSteps() throws {
        #expect(
            try steps(#"[{"_id":"a","o":{"x":1,"y":2}}]"#, #"[{"_id":"a","o":{"y":2,"x":1}}]"#)
                == [])
        #expect(try steps("[]", "[]") == [])
    }

    @Test func goneFieldsAreCleared() throws {
        #expect(
            try steps(#"[{"_id":"a","x":1,"y":2}]"#, #"[{"_id":"a","z":null}]"#)
                == [#"*a {"z":null} xy"#])
    }
}
