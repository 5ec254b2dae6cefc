package import Wire

/// Repeats recorded cases of Meteor's own code and compares the results. What a file contains, and
/// how it is compared, is documented next to the files.
package struct Replay {
    package enum Kind: String, CaseIterable { case minimongo, ejson, random }

    package private(set) var passed = 0
    /// One line for each difference: file, list and number of the case, what was expected, and what
    /// came.
    package private(set) var differences: [String] = []

    private var file = ""

    package init() {}

    /// - Parameters:
    ///   - kind: of the cases in the file.
    ///   - file: its name, for the differences.
    /// - Throws: an error if the text is not a file of cases.
    package mutating func run(
        _ kind: Kind, file: String, text: [UInt8]
    ) throws(RealtimeError) {
        self.file = file
        var document = JSONDocument()
        let count = passed + differences.count
        try text.withUnsafeBufferPointer { text throws(RealtimeError) in
            try document.read(UnsafeRawBufferPointer(text)) { root throws(RealtimeError) in
                switch kind {
                case .minimongo: try runMinimongo(root)
                case .ejson: try runEJSON(root)
                case .random: try runRandom(root)
                }
            }
        }
        guard passed + differences.count > count else {
            throw RealtimeError(.invalidArgument, "\(file) contains no cases")
        }
    }

    /// - Parameters:
    ///   - number: the member `n` of the case.
    ///   - expected: nil stands for an error.
    mutating func compare(_ list: String, _ number: JSONNode, _ expected: EJSON?, _ got: EJSON?) {
        guard expected != got else {
            passed += 1
            return
        }
        let number = number.member("n")?.integer ?? 0
        differences.append(
            "\(file): \(list) \(number): \(expected?.text ?? "error") expected,"
                + " \(got?.text ?? "error") came")
    }
}

extension JSONNode {
    /// The member as EJSON, nil if there is none.
    func value(_ name: StaticString) throws(RealtimeError) -> EJSON? {
        guard let member = member(name) else { return nil }
        return try EJSON(member)
    }

    /// The elements of a member that is a list.
    func list(_ name: StaticString) -> JSONNode.Elements? { member(name)?.elements }
}
