import CShims
import Engine
import Session
import Wire

// Fills the views of Spreadbot. Nothing here is exported.

extension SpreadbotSession.Failure {
    var view: FailureView {
        FailureView(
            error: error, httpStatus: status, retryIn: retryIn, attempt: attempt,
            isFatal: isFatal, transport: transportNumber(of: transport))
    }
}

extension SpreadbotSent {
    /// Calls `function` with a view of this.
    func show(to function: rt_spreadbot_sent_fn, _ user: UnsafeMutableRawPointer?) {
        func show(_ response: rt_rest_response?) {
            (error?.message ?? "").withCString {
                var view = rt_spreadbot_sent(
                    struct_bytes: MemoryLayout<rt_spreadbot_sent>.size, number: number,
                    status: error?.code.rawValue ?? RT_STATUS.OK.rawValue, message: $0,
                    response: response)
                function(&view, user)
            }
        }
        guard let result, result.outcome.head != nil else { return show(nil) }
        RESTView.show(result, to: show)
    }
}

extension SpreadbotMessage {
    /// Calls `function` with a view of a Spreadbot connection's message.
    func show(to function: rt_event_fn, _ user: UnsafeMutableRawPointer?) {
        var view = rt_event(
            struct_bytes: MemoryLayout<rt_event>.size, id: characters(id), id_length: id.count,
            event: characters(event), event_length: event.count, data: characters(data),
            data_length: data.count, content_type: StaticText.empty, had_id: hadID)
        function(&view, user)
    }
}
