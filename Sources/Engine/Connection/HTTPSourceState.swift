package import Session
import Synchronization
package import Wire

extension HTTPSource {
    /// The URL that was set last.
    package var url: String { options.read { $0.pointee.url.text } }

    /// Changes the URL for the next attempt. Allowed whenever `configure` is.
    package func setURL(_ url: String) throws(RealtimeError) {
        let url = try HTTPURL(parsing: url, as: .http)
        try configure { $0.url = url }
    }

    package var connectionState: ConnectionState {
        switch state {
        case .open: .open
        case .closed: .closed
        case .connecting where !wasStarted: .idle
        case .connecting: isWaiting.load(ordering: .relaxed) ? .waiting : .connecting
        }
    }

    /// The caller knows that the network is back: an attempt that waits is made at once.
    package func retryNow() throws(RealtimeError) {
        try loop.checkUsable()
        guard wasStarted else { return }
        // Enqueued, as the start may be.
        loop.enqueue { [self] in
            if !isClosed, session?.retryNow(Loop.now()) == true { updateTimer() }
        }
    }

    /// The credentials of the last request, and those that are set now.
    var sentSecrets: SentSecrets {
        var secrets = SentSecrets(configuration.headers.all, configuration.url)
        if let request = session?.request { secrets.add(SentSecrets(request.fields, request.url)) }
        secrets.add(configuration.network)
        return secrets
    }
}
