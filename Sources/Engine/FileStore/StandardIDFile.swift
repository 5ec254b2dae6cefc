import CShims
import Glibc
import Wire

/// Where event sources keep last event ids for the next run of a program, if the user wants that
/// and names no file: `librealtime/event-ids/PROGRAM` below $XDG_STATE_HOME, or ~/.local/state.
package enum StandardIDFile {
    /// The path for a program; its folders are created.
    /// - Returns: nil if no file can be kept there; the log says why.
    package static func path(for program: String) -> String? {
        do throws(RealtimeError) {
            return try path(
                for: program, state: variable("XDG_STATE_HOME"), home: variable("HOME"))
        } catch {
            Log.write(.warning, "last event ids are not kept for the next run: \(error.message)")
            return nil
        }
    }

    /// - Parameters:
    ///   - program: its path, of which the last component counts.
    ///   - state: $XDG_STATE_HOME; a relative path is ignored, as the XDG specification demands.
    ///   - home: $HOME.
    static func path(
        for program: String, state: String?, home: String?
    ) throws(RealtimeError) -> String {
        let folder = try folder(state: state, home: home)
        let name = program.utf8.split(separator: UInt8(ascii: "/")).last
        let path = "\(folder)/\(name.map { String(Substring($0)) } ?? "program")"
        try KeyedStore(path: path, format: .eventIDs).check()
        return path
    }

    private static func folder(state: String?, home: String?) throws(RealtimeError) -> String {
        let base: String
        if let state, state.utf8.first == UInt8(ascii: "/") {
            base = state
        } else if let home, home.utf8.first == UInt8(ascii: "/") {
            base = home + "/.local/state"
        } else {
            throw RealtimeError(
                .store, "neither XDG_STATE_HOME nor HOME is set to an absolute path")
        }
        let folder = base + "/librealtime/event-ids"
        guard make(folder) else {
            let cause = errno
            throw RealtimeError(
                .store,
                "the folder \(folder) cannot be created: \(String(cString: strerror(cause)))",
                systemError: cause)
        }
        return folder
    }

    /// Creates a folder and those above it, readable only by this user.
    private static func make(_ folder: String) -> Bool {
        var path = Array(folder.utf8CString)
        var isThere = false
        for index in 1..<path.count where path[index] == 0 || path[index] == CChar(ascii: "/") {
            let end = path[index]
            path[index] = 0
            isThere = mkdir(path, 0o700) == 0 || errno == EEXIST
            path[index] = end
        }
        return isThere
    }

    private static func variable(_ name: String) -> String? {
        shim_environment(name).map { String(cString: $0) }
    }
}

extension CChar {
    fileprivate init(ascii: Unicode.Scalar) { self.init(UInt8(ascii: ascii)) }
}
