import Glibc

/// Lines on standard error, for who asked for them.
package enum StandardError {
    /// One call a line, so that lines of several threads do not mix.
    package static func write(_ line: String) {
        var line = line
        line.withUTF8 { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
