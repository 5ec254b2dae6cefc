public import Foundation
public import Realtime

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// The delegate with the types of PusherSwift: the same as `Realtime.PusherDelegate`, of whose
/// functions these two also have a form with `URLResponse` and `NSError`. Implement either form.
///
/// A response is an `HTTPURLResponse` with the status and the headers; its URL is `about:blank`.
/// A file that also imports `Realtime` must name this protocol `RealtimeFoundation.PusherDelegate`.
@MainActor public protocol PusherDelegate: Realtime.PusherDelegate {
    /// - Parameters:
    ///   - response: the response of the authorization endpoint, if it refused.
    ///   - data: its body, or what the server sent with its refusal.
    func failedToSubscribeToChannel(
        name: String, response: URLResponse?, data: String?, error: NSError?)
    /// - Parameter response: an `HTTPURLResponse`, or another `URLResponse` if none came.
    func failedToRegisterForPushNotifications(response: URLResponse, responseBody: String?)
}

extension PusherDelegate {
    public func failedToSubscribeToChannel(
        name: String, response: HTTPResponse?, data: String?, error: RealtimeError?
    ) {
        failedToSubscribeToChannel(
            name: name, response: response?.urlResponse, data: data, error: error?.nsError)
    }

    public func failedToSubscribeToChannel(
        name: String, response: URLResponse?, data: String?, error: NSError?
    ) {}

    public func failedToRegisterForPushNotifications(
        response: HTTPResponse?, responseBody: String?
    ) {
        let none = URLResponse(
            url: .blank, mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
        failedToRegisterForPushNotifications(
            response: response?.urlResponse ?? none, responseBody: responseBody)
    }

    public func failedToRegisterForPushNotifications(
        response: URLResponse, responseBody: String?
    ) {}
}

extension URL {
    fileprivate static var blank: URL {
        guard let blank = URL(string: "about:blank") else { preconditionFailure("not a URL") }
        return blank
    }
}

extension HTTPResponse {
    /// Headers with the same name are joined, as `URLSession` does.
    fileprivate var urlResponse: URLResponse? {
        let fields = Dictionary(headers.map { ($0.name, $0.value) }) { "\($0), \($1)" }
        return HTTPURLResponse(
            url: .blank, statusCode: status, httpVersion: nil, headerFields: fields)
    }
}

extension RealtimeError {
    fileprivate var nsError: NSError {
        NSError(domain: RealtimeError.errorDomain, code: errorCode, userInfo: errorUserInfo)
    }
}
