public import CShims
import Documents
import Engine
import Session
import Wire

// Chapter: ddp callbacks. They may be set at any time, from any thread; NULL removes a callback.
// All run on the loop's thread, one at a time, and may call any function.

/// Receives a change of a client's status. Since 0.1.
public typealias rt_ddp_status_fn =
    @convention(c) (
        _ change: UnsafePointer<rt_ddp_status_change>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Called when a connection is open. Since 0.1.
public typealias rt_ddp_open_fn = @convention(c) (_ user: UnsafeMutableRawPointer?) -> Void

/// Called when all documents are of this run. Since 0.1.
public typealias rt_ddp_current_fn = @convention(c) (_ user: UnsafeMutableRawPointer?) -> Void

/// Receives a change of a document, or of a live query's result. Since 0.1.
public typealias rt_ddp_change_fn =
    @convention(c) (
        _ change: UnsafePointer<rt_ddp_change>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives a live query that has ended by itself. Since 0.1.
public typealias rt_ddp_query_end_fn =
    @convention(c) (
        _ end: UnsafePointer<rt_ddp_query_end>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives a change of the account. Since 0.1.
public typealias rt_ddp_account_fn =
    @convention(c) (
        _ event: UnsafePointer<rt_ddp_account_event>?, _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives what the server did not understand: its reason, and the message as JSON text if the
/// server repeats it, otherwise "". Both are valid until the callback returns. Since 0.1.
public typealias rt_ddp_refused_fn =
    @convention(c) (
        _ reason: UnsafePointer<CChar>?, _ reason_length: Int,
        _ offending: UnsafePointer<CChar>?, _ offending_length: Int,
        _ user: UnsafeMutableRawPointer?
    ) -> Void

/// Receives a line for debugging, without the final LF. Since 0.1.
public typealias rt_ddp_debug_fn =
    @convention(c) (_ line: UnsafePointer<CChar>?, _ user: UnsafeMutableRawPointer?) -> Void

/// - Callbacks: ddp, ddpHandlers
extension DDPHandlers {
    /// Sets the callback for changes of the status. When it runs, `rt_ddp_get_status` already
    /// returns the new one. A wait for a network is reported once, by the failure that led to it or
    /// by RT_ERROR_CONNECT; the status is then offline, and may have been before. Since 0.1.
    mutating func onStatus(_ box: CallbackBox<rt_ddp_status_fn>) {
        status = box.function.map { function in { $0.show(to: function, box.user) } }
    }

    /// Sets the callback that runs each time a connection is open, before the server has confirmed
    /// it. Calls that it makes are sent before all calls that waited for a connection, after the
    /// login with a token. One with the option `wait` is finished before the others are sent. Calls
    /// that other threads make meanwhile wait with those from before. Since 0.1.
    mutating func onOpen(_ box: CallbackBox<rt_ddp_open_fn>) {
        open = box.function.map { function in { function(box.user) } }
    }

    /// Sets the callback for changes of the local documents, by the server and by stubs. Changes
    /// that were made together come one after the other; the field `last` marks the last of them.
    /// Live queries are reported after them. Since 0.1.
    mutating func onChange(_ box: CallbackBox<rt_ddp_change_fn>) {
        changed = box.function.map { function in
            { show($0, to: function, box.user, while: $1) }
        }
    }

    /// Sets the callback for live queries that have ended by themselves, those of feeds, too: their
    /// regular expressions need too many steps for documents that have changed. Such a query has
    /// reported all changes before, and reports no more. Since 0.1.
    mutating func onQueryEnd(_ box: CallbackBox<rt_ddp_query_end_fn>) {
        queryEnded = box.function.map { function in { $0.show(to: function, box.user) } }
    }

    /// Sets the callback that runs when the documents of an earlier run
    /// (`rt_ddp_set_document_file`) have been replaced by those of the server. It does not run if
    /// there were none. Since 0.1.
    mutating func onCurrent(_ box: CallbackBox<rt_ddp_current_fn>) {
        current = box.function.map { function in { function(box.user) } }
    }

    /// Sets the callback for changes of the account: of the user, and of the token that logs the
    /// user in again. Since 0.1.
    mutating func onAccount(_ box: CallbackBox<rt_ddp_account_fn>) {
        account = box.function.map { function in { $0.show(to: function, box.user) } }
    }

    /// Sets the callback for messages that the server did not understand. The connection stays.
    /// Since 0.1.
    mutating func onRefused(_ box: CallbackBox<rt_ddp_refused_fn>) {
        refused = box.function.map { function in
            { reason, offending in
                var texts = ViewTexts()
                let (reason, offending) = (texts.add(reason), texts.add(offending ?? []))
                texts.read { text in
                    function(
                        text(reason), reason.count, text(offending), offending.count, box.user)
                }
            }
        }
    }

    /// Sets the callback for debugging: it receives a line, beginning with `[DDP]`, for what is out
    /// of the ordinary: messages that are ignored, lost connections, stubs that fail, and logins
    /// that are repeated. Since 0.1.
    mutating func onDebug(_ box: CallbackBox<rt_ddp_debug_fn>) {
        debug = box.function.map { function in
            { line in line.withCString { function($0, box.user) } }
        }
    }
}
