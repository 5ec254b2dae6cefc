import CShims

/// libcurl's callbacks for a handle's worker. Each gets the handle as its user data.
struct CurlCalls {
    /// A line of the response's head.
    let header: shim_curl_data_fn
    let body: shim_curl_data_fn
    /// More of the request's body is needed.
    let bodyWanted: shim_curl_data_fn
    let progress: shim_curl_progress_fn
    /// A line of libcurl's log.
    let log: shim_curl_debug_fn
    /// A new connection is needed.
    let socketWanted: shim_curl_wanted_fn
}
