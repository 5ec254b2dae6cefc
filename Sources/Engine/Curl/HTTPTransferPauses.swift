import CShims

// Pauses a transfer while other users keep libcurl busy; see `CurlMulti`.
extension HTTPTransfer {
    func suspend() -> Bool {
        guard isOpen, isConnected, result == nil, !isHeld else { return false }
        (isSuspended, isHeldForOthers) = (true, true)
        hold()
        return true
    }

    func resume() {
        isSuspended = false
        if isOpen { note() }
    }
}
