import Wire

extension HTTPTransfer {
    /// The connection that the exchange uses; nil for none.
    var connection: Shared<Opened>? { isOpen ? handle.opened(by: httpVersion) : nil }

    /// The argument of the open handler.
    /// - Parameter head: of the response.
    func opened(_ head: ResponseHead?) -> Opened {
        var opened = connection?.value ?? Opened()
        opened.response = head.map { HTTPResponse($0, body: []) }
        return opened
    }
}
