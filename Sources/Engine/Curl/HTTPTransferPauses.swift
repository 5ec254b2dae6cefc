import CShims

// While libcurl is kept busy by others; see `CurlMulti`.
extension HTTPTransfer {
    func suspend() -> Bool {
        guard isOpen, isConnected, result == nil, !isHeld else { return false }
        isSuspended = true
        hold()
        return true
    }

    func resume() {
        isSuspended = false
        if isOpen { note() }
    }
}
