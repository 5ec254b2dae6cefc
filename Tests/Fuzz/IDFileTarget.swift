/// A file of event ids survives writing and parsing, and a removed key is gone.
func fuzzIDFile(_ input: consuming Input) {
    let bytes = Array(input.rest)
    guard var file = try? KeyedFile(parsing: bytes, .eventIDs) else { return }
    require((try? KeyedFile(parsing: file.bytes, .eventIDs)) == file, "another file is written")
    let key = String(decoding: bytes.prefix(20), as: UTF8.self)
    guard !key.isEmpty else { return }
    file[key] = "id"
    let again = try? KeyedFile(parsing: file.bytes, .eventIDs)
    require(again == file && again?[key] == "id", "the key \(key) is lost")
    file[key] = ""
    require((try? KeyedFile(parsing: file.bytes, .eventIDs))?[key] == nil, "the key \(key) stays")
}
