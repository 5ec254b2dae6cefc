import CShims

// Pauses a transfer while other users keep libcurl busy; see `CurlMulti`.
extension HTTPTransfer {
    func suspend() -> Bool {
        guard isOpen, isConnected, result == nil, !isHeld else { return false }
        (isSuspended, isHeldForOthers) = (true, true)
        hold()
        return true
    }

    /// Stops libcurl from reading. Not called in its callbacks, where it would first read once
    /// more.
    func hold() {
        guard !isHeld else { return }
        isHeld = true
        // Sending stays paused while the request's body has no bytes.
        _ = curl_easy_pause(easy, CURLPAUSE_RECV | (requestBody.isAwaited ? CURLPAUSE_SEND : 0))
    }

    func resume() {
        isSuspended = false
        if isOpen { note() }
    }
}
