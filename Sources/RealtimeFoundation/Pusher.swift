public import Foundation
public import Realtime

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// Makes the request that asks for permission to subscribe to a channel.
public protocol AuthRequestBuilderProtocol: PusherAuthRequestBuilder {
    /// Called on the main actor for each channel that needs permission, again after each reconnect.
    /// A body must be `httpBody`; a stream is not sent.
    /// - Returns: nil fails the subscription.
    @MainActor func requestFor(socketID: String, channelName: String) -> URLRequest?
}

extension AuthRequestBuilderProtocol {
    @MainActor public func authorizationRequest(
        socketID: String, channelName: String
    ) -> REST.Request? {
        requestFor(socketID: socketID, channelName: channelName).flatMap { REST.Request($0) }
    }
}

extension REST.Request {
    /// The method, URL, headers and `httpBody` of a request; nil without a URL.
    public init?(_ request: URLRequest) {
        guard let url = request.url else { return nil }
        // URLSession names this type unless the program does.
        let form = "application/x-www-form-urlencoded"
        let type = request.value(forHTTPHeaderField: "Content-Type") == nil ? form : nil
        let body = request.httpBody.map { Body.data($0, type: type) }
        let headers = (request.allHTTPHeaderFields ?? [:]).sorted { $0.key < $1.key }
        self.init(
            request.httpMethod ?? "GET", url, body: body ?? .none,
            headers: headers.map { (name: $0.key, value: $0.value) })
    }
}

extension NativePusher {
    /// Registers this device; see `register(deviceToken:)`.
    public func register(deviceToken: Data) { register(deviceToken: [UInt8](deviceToken)) }
}
