extension HTTPTransfer {
    struct Options {
        /// From the start to a connection that is ready, TLS included; zero for none.
        var connectTimeout: Duration = .zero
        /// Offers every coding that libcurl knows, and decodes.
        var decodes = true
        /// Over TLS, where the server agrees to it.
        var offersHTTP2 = true
        /// Waits for a connection that can be shared rather than opening another.
        var prefersSharing = false
        var takesFreshConnection = false
        /// A request that may not be repeated is not sent again by libcurl either.
        var goesOutOnce = false
        var reportsProgress = false
        /// Bytes of the answer that are taken before its owner is asked whether it wants them: what
        /// the first read decodes to.
        var mostUndelivered = 256 << 20
        /// What sets that; "" for the library.
        private(set) var limitName = ""

        /// For an answer that is kept whole: a read may decode to all of it, and to no more.
        /// - Parameter bytes: 0 for no limit.
        mutating func limitAnswer(_ bytes: Int) {
            mostUndelivered = bytes > 0 ? bytes : .max
            limitName = "max_body_bytes"
        }
    }

    struct Progress: Equatable {
        /// Bytes of bodies; the totals are 0 when they are not known.
        var sent: UInt64 = 0
        var toSend: UInt64 = 0
        var received: UInt64 = 0
        var toReceive: UInt64 = 0
    }
}
