package import Session
package import Wire

/// A request that is being built. `send` copies it, so it can be sent again or changed afterwards.
/// One thread at a time.
package final class RESTRequestBuilder {
    package let client: RESTClient
    @exclusivity(unchecked) private var method: String
    @exclusivity(unchecked) private var path: String
    @exclusivity(unchecked) private var query = ""
    /// The URL made of path and query; nil until it is needed.
    @exclusivity(unchecked) var url: HTTPURL?
    @exclusivity(unchecked) private var headers = HeaderFields()
    @exclusivity(unchecked) private var body = HTTPRequest.Body.none
    @exclusivity(unchecked) package var policy: RESTPolicy
    @exclusivity(unchecked) package var handlers = RESTHandlers()
    /// The body's source was passed to a request.
    @exclusivity(unchecked) private var sourceIsUsed = false
    /// Shared with that request until it ends.
    @exclusivity(unchecked) private var sourceLease: RESTSourceLease?

    /// - Parameter path: relative to the client's base URL, or an absolute URL.
    package convenience init(
        _ client: RESTClient, _ method: String, _ path: String
    ) throws(RealtimeError) {
        let method = try checkedMethod(method)
        self.init(client, method, path, try client.url(of: path))
    }

    /// - Parameter url: nil if `setTarget` sets it.
    convenience init(_ client: RESTClient, _ method: String, to url: HTTPURL?) {
        self.init(client, method, url?.text ?? "", url)
    }

    private init(_ client: RESTClient, _ method: String, _ path: String, _ url: HTTPURL?) {
        self.client = client
        self.method = method
        self.path = path
        self.url = url
        policy = client.options.read { options in options.pointee.policy }
        policy.isOfRequest = true
    }

    /// The credentials that it carries.
    var secrets: SentSecrets { SentSecrets(headers.all, url) }

    /// Whether there is a URL to send to.
    var hasTarget: Bool { url != nil || !path.isEmpty }

    /// Changes the method and the URL. Query parameters that were added are dropped.
    /// - Parameter url: relative to the client's base URL, or an absolute URL.
    package func setTarget(_ method: String, _ url: String) throws(RealtimeError) {
        let method = try checkedMethod(method)
        self.url = try client.url(of: url)
        (self.method, path, query) = (method, url, "")
    }

    package func addHeader(_ name: String, _ value: String) throws(RealtimeError) {
        try HeaderField.validate(name: name, value: value, mayExpect: true)
        try HeaderField.validate(adding: name, to: headers)
        headers.append(HeaderField(name: name, value: value))
    }

    package func clearHeaders() { headers = HeaderFields() }

    /// Sets a header, replacing all of its name; nil removes them.
    package func setHeader(_ name: String, _ value: String?) throws(RealtimeError) {
        try HeaderField.validate(name: name, value: value ?? "", mayExpect: true)
        headers.set(name, value)
    }

    /// Adds a query parameter after those of the path.
    package func addQuery(_ name: String, _ value: String) {
        url = nil
        query += (query.isEmpty ? "" : "&") + formEncoded(name) + "=" + formEncoded(value)
    }

    /// - Parameter type: the Content-Type; nil leaves that header unchanged.
    package func setBody(_ bytes: [UInt8], type: String?) throws(RealtimeError) {
        if let type { try setHeader("Content-Type", type) }
        body = .bytes(bytes)
        setSource(nil, rewind: nil)
    }

    /// Adds a parameter to a body that is a form; without a body, begins a form.
    /// - Throws: `.state` for another body.
    package func addFormParameter(_ name: String, _ value: String) throws(RealtimeError) {
        var form: [UInt8]
        switch body {
        case .none: form = []
        case .bytes(let bytes) where isForm: form = bytes
        case .bytes, .stream: throw RealtimeError(.state, "the request's body is not a form")
        }
        if !form.isEmpty { form.append(UInt8(ascii: "&")) }
        form += "\(formEncoded(name))=\(formEncoded(value))".utf8
        // The type may have a charset.
        try setBody(form, type: isForm ? nil : formMediaType)
    }

    private var isForm: Bool {
        let type = headers.all.first { $0.name.equalsIgnoringASCIICase("Content-Type") }
        return type.flatMap { MediaType($0.value) }?.matches(formMediaType) ?? false
    }

    /// Sets a body that `source` produces. Without a length it is sent chunked.
    package func setBody(
        length: Int?, _ source: @escaping (UnsafeMutableRawBufferPointer) -> RESTBodyStep,
        rewind: (() -> Bool)?
    ) {
        body = .stream(length: length)
        sourceIsUsed = false
        sourceLease = nil
        setSource(source, rewind: rewind)
    }

    private func setSource(
        _ source: ((UnsafeMutableRawBufferPointer) -> RESTBodyStep)?, rewind: (() -> Bool)?
    ) {
        changeHandlers {
            $0.source = source
            $0.rewind = rewind
        }
    }

    /// Changes handlers. The old ones are released after the new ones are set, because the destroy
    /// function of their user data may call us.
    package func changeHandlers(_ change: (inout RESTHandlers) -> Void) {
        var new = handlers
        change(&new)
        let old = exchange(&handlers, with: new)
        withExtendedLifetime(old) {}
    }

    /// Sends the request. Its terminal callback runs later, exactly once.
    /// - Returns: its number, for `RESTClient.cancel`.
    @discardableResult
    package func send() throws(RealtimeError) -> UInt64 {
        try client.checkOpen()
        let (request, handlers) = try copy()
        return client.send(request, handlers)
    }

    /// Calls one more function with the number of the request, before any of its callbacks.
    package func addNumberHandler(_ assigned: @escaping (UInt64) -> Void) {
        let others = handlers.assigned
        handlers.assigned = { number in
            others?(number)
            assigned(number)
        }
    }

    /// The request as it is now. A body's source can serve one request at a time, and is rewound
    /// for each but the first.
    func copy() throws(RealtimeError) -> (RESTRequest, RESTHandlers) {
        guard case .stream = body else { return (try request(rewinds: false), handlers) }
        guard sourceLease == nil || isKnownUniquelyReferenced(&sourceLease) else {
            throw RealtimeError(
                .state, "the body's source is in use by a request that has not ended")
        }
        guard !sourceIsUsed || handlers.rewind != nil else {
            throw RealtimeError(
                .state, "the body's source was used by another request and cannot be rewound")
        }
        let request = try request(rewinds: sourceIsUsed)
        sourceIsUsed = true
        var handlers = handlers
        let lease = RESTSourceLease()
        handlers.sourceLease = lease
        sourceLease = lease
        return (request, handlers)
    }

    private func request(rewinds: Bool) throws(RealtimeError) -> RESTRequest {
        guard method != "HEAD" || body == .none else {
            throw RealtimeError(.invalidArgument, "a HEAD request has no body (RFC 9110 §9.3.2)")
        }
        let url = try wholeURL()
        var request = HTTPRequest(method, url, fields: headers.all, body: body)
        let (isTrusted, shared) = client.options.read { options in
            let isTrusted = options.pointee.trusts(url)
            return (isTrusted, options.pointee.fields(isTrusted: isTrusted))
        }
        request.lay(over: shared)
        return RESTRequest(
            request, policy, canRewind: handlers.rewind != nil, rewinds: rewinds,
            streamsAnswer: handlers.body != nil, isTrusted: isTrusted)
    }

    private func wholeURL() throws(RealtimeError) -> HTTPURL {
        if let url { return url }
        let path = path.withoutFragment
        let whole = path + (path.contains("?") ? "&" : "?") + query
        let made = try client.url(of: whole)
        url = made
        return made
    }
}
