import Glibc

/// Writes lines to standard error, for diagnostics that the user requested.
package enum StandardError {
    /// Each line is one system call, so that lines of several threads do not mix.
    package static func write(_ line: String) {
        var line = line
        line.withUTF8 { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
