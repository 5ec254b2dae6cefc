/// A file of event ids survives writing and parsing, and a removed key is gone.
func fuzzIDFile(_ input: consuming Input) {
    let bytes = Array(input.rest)
    guard var file = try? EventIDFile(parsing: bytes) else { return }
    require((try? EventIDFile(parsing: file.bytes)) == file, "another file is written")
    let key = String(decoding: bytes.prefix(20), as: UTF8.self)
    guard !key.isEmpty else { return }
    file[key] = "id"
    let again = try? EventIDFile(parsing: file.bytes)
    require(again == file && again?[key] == "id", "the key \(key) is lost")
    file[key] = ""
    require((try? EventIDFile(parsing: file.bytes))?[key] == nil, "the key \(key) stays")
}
