import Session
import Wire

/// The file in which Meteor clients keep their login tokens (M15), each under the address of
/// its server. Any number of clients and processes may share it; only its owner may read it.
struct DDPTokenFile {
    private let store: KeyedStore
    private let key: String

    /// How long a write may wait for the file's lock: the loop stands still meanwhile.
    private static let lockTimeout = Duration.milliseconds(500)

    /// nil if the options name no file.
    init?(_ options: DDPClientConfiguration) {
        guard let path = options.tokenFile else { return nil }
        store = KeyedStore(path: path, format: .loginTokens)
        key = options.address.key
    }

    /// - Throws: `.store` if the file cannot be used.
    func check() throws(RealtimeError) { try store.check() }

    func load() -> DDPKeptLogin {
        do throws(RealtimeError) {
            return .known(try store.load(key).flatMap { DDPLoginToken(text: $0) })
        } catch {
            Log.write(.warning, "no login is known: \(error.message)")
            return .unknown
        }
    }

    /// - Parameter token: nil to forget the one that is kept.
    /// - Returns: why that could not be done; nil if it is done.
    func save(_ token: DDPLoginToken?) -> RealtimeError? {
        do throws(RealtimeError) {
            var timeout = DDPTokenFile.lockTimeout
            let refused = try store.save(&timeout) { [(key, token?.text ?? "")] }
            if !refused.isEmpty { throw store.isFull }
            return nil
        } catch {
            let message = "the login is not kept for the next run: \(error.message)"
            Log.write(.warning, message)
            return RealtimeError(.store, message, systemError: error.systemError)
        }
    }
}

/// The login that the program or a file keeps.
enum DDPKeptLogin {
    /// Nobody keeps logins, or the file cannot be read.
    case unknown
    /// nil: nobody is logged in.
    case known(DDPLoginToken?)
}
