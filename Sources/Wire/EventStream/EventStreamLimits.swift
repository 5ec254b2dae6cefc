extension EventStreamParser {
    /// Limits on what the parser keeps of a server's bytes; 0 means no limit.
    /// - Object: eventstream_parser, EventStreamParser.Limits, before the first bytes
    package struct Limits: Sendable {
        /// The longest line of the stream. Comments without a listener, and lines of unknown
        /// fields, do not count. A longer line is an RT_ERROR_TOO_LARGE, after which nothing more
        /// is read.
        /// - Option: max_line_bytes, bytes, once, python max_line_size
        package var line = 64 << 20
        /// The most data of one event. More is an RT_ERROR_TOO_LARGE, after which nothing more is
        /// read.
        /// - Option: max_event_bytes, bytes, once, python max_event_size
        package var data = 64 << 20
        /// The longest id, and the longest type, of an event. A longer one is an
        /// RT_ERROR_TOO_LARGE, after which nothing more is read.
        /// - Option: max_name_bytes, bytes, once, python max_name_size
        package var name = 64 << 10
        /// The object whose options these limits are.
        package var owner = OptionOwner.eventstreamParser

        package init() {}

        package init(line: Int, data: Int, name: Int) {
            self.line = line
            self.data = data
            self.name = name
        }
    }
}
