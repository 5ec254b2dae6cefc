import Wire

extension HTTPTransfer {
    /// The connection that it is on; nil when it is on none.
    var connection: Shared<Opened>? { isOpen ? handle.opened(by: httpVersion) : nil }

    /// What the open handler receives.
    /// - Parameter head: of its answer.
    func opened(_ head: ResponseHead?) -> Opened {
        var opened = connection?.value ?? Opened()
        opened.response = head.map { HTTPResponse($0, body: []) }
        return opened
    }
}
