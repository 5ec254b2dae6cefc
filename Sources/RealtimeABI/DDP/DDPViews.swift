import CShims
import Documents
import Engine
import Session
import Wire

// Fills the views of Meteor clients. Nothing here is exported.

extension DDPConnection: Handle {
    static let name = "ddp"
    var owningLoop: Loop? { loop }
}

extension DDPStatusChange {
    /// Calls `function` with a view of this.
    func show(to function: rt_ddp_status_fn, _ user: UnsafeMutableRawPointer?) {
        var texts = ViewTexts()
        let (reason, message) = (texts.add(reason), texts.add(error?.message ?? ""))
        texts.read { text in
            var view = rt_ddp_status_change(
                struct_bytes: MemoryLayout<rt_ddp_status_change>.size, new_status: status.rawValue,
                retry_count: UInt32(clamping: retryCount),
                retry_in_ms: retryIn.map { EventSourceConnection.milliseconds($0) } ?? -1,
                reason: text(reason), reason_length: reason.count,
                status: error?.code.rawValue ?? RT_STATUS.OK.rawValue, reserved: 0,
                message: text(message))
            function(&view, user)
        }
    }
}

extension DDPError {
    private var number: RT_DDP_ERROR {
        switch kind {
        case .server: .SERVER
        case .stub: .STUB
        case .invocationFailed: .INVOCATION_FAILED
        case .disconnected: .DISCONNECTED
        case .timeout: .TIMEOUT
        case .closed: .CLOSED
        }
    }

    fileprivate func fill(_ texts: inout ViewTexts) -> (ViewTexts.Locate) -> rt_ddp_error {
        let (code, reason) = (texts.add(code), texts.add(reason ?? ""))
        let (details, source) = (texts.add(details?.text ?? ""), texts.add(source))
        return { text in
            rt_ddp_error(
                struct_bytes: MemoryLayout<rt_ddp_error>.size, kind: number.rawValue,
                code_is_number: codeIsNumber, code: text(code), code_length: code.count,
                reason: text(reason), reason_length: reason.count, details: text(details),
                details_length: details.count, source: text(source), source_length: source.count)
        }
    }

    /// The same as an error of the library.
    func realtimeError(_ what: String) -> RealtimeError {
        RealtimeError(.method, "\(what): \(self)")
    }
}

/// Calls `body` with the address of a view; NULL for none.
private func withAddress<View>(of view: View?, _ body: (UnsafePointer<View>?) -> Void) {
    guard let view else { return body(nil) }
    withUnsafePointer(to: view) { body($0) }
}

/// The texts of an outcome, and its structs.
private struct DDPOutcomeTexts {
    var texts = ViewTexts()
    private let value: ViewTexts.Text
    private var failure: ((ViewTexts.Locate) -> rt_ddp_error)?

    init(_ outcome: DDPStubOutcome) {
        switch outcome {
        case .success(let given): value = texts.add(given)
        case .failure(let error):
            value = texts.add(.null)
            failure = error.fill(&texts)
        }
    }

    func error(_ text: ViewTexts.Locate) -> rt_ddp_error? { failure?(text) }

    func view(
        _ stage: RT_DDP_STAGE, _ error: UnsafePointer<rt_ddp_error>?, index: Int = 0,
        _ text: ViewTexts.Locate
    ) -> rt_ddp_outcome {
        rt_ddp_outcome(
            struct_bytes: MemoryLayout<rt_ddp_outcome>.size, stage: stage.rawValue,
            index: Int32(clamping: index),
            value: text(value), value_length: value.count, error: error)
    }
}

/// Shows a stage of a call.
func show(
    _ outcome: DDPStubOutcome, _ stage: RT_DDP_STAGE, index: Int = 0,
    to function: rt_ddp_outcome_fn, _ user: UnsafeMutableRawPointer?
) {
    let content = DDPOutcomeTexts(outcome)
    content.texts.read { text in
        withAddress(of: content.error(text)) { error in
            var view = content.view(stage, error, index: index, text)
            function(&view, user)
        }
    }
}

/// An outcome in memory of its own, which begins with the outcome's struct.
private struct DDPOutcomeCopy {
    var outcome: rt_ddp_outcome
    var error: rt_ddp_error

    /// Where the error is.
    static let errorOffset = MemoryLayout<rt_ddp_outcome>.stride
}

/// The outcome of a completed call. The caller owns it and frees it with `Inbox.free`.
private func copied(_ outcome: DDPStubOutcome) -> UnsafeMutablePointer<rt_ddp_outcome> {
    let content = DDPOutcomeTexts(outcome)
    let copy = content.texts.copied { text, start in
        let error = content.error(text)
        let place = (start + DDPOutcomeCopy.errorOffset)
            .assumingMemoryBound(to: rt_ddp_error.self)
        return DDPOutcomeCopy(
            outcome: content.view(.COMPLETED, error == nil ? nil : place, text),
            error: error ?? rt_ddp_error())
    }
    return copy.assumingMemoryBound(to: rt_ddp_outcome.self)
}

extension CallAnswer {
    convenience init(_ outcome: DDPStubOutcome) {
        var failure: RealtimeError?
        if case .failure(let error) = outcome {
            failure = error.realtimeError("the call has failed")
        }
        self.init(outcome: copied(outcome), error: failure)
    }
}

/// Shows what happened to a subscription.
func show(
    _ event: RT_DDP_SUBSCRIPTION, _ error: DDPError?, to function: rt_ddp_subscription_fn,
    _ user: UnsafeMutableRawPointer?
) {
    var texts = ViewTexts()
    let fill = error?.fill(&texts)
    texts.read { text in
        withAddress(of: fill?(text)) { error in
            var view = rt_ddp_subscription_event(
                struct_bytes: MemoryLayout<rt_ddp_subscription_event>.size, event: event.rawValue,
                reserved: 0, error: error)
            function(&view, user)
        }
    }
}

/// Shows how the subscriptions of a loader ended.
func show(
    _ error: DDPError?, to function: rt_ddp_loaded_fn, _ user: UnsafeMutableRawPointer?
) {
    var texts = ViewTexts()
    let fill = error?.fill(&texts)
    texts.read { text in withAddress(of: fill?(text)) { function($0, user) } }
}

extension DDPAccountEvent {
    /// Calls `function` with a view of this.
    func show(to function: rt_ddp_account_fn, _ user: UnsafeMutableRawPointer?) {
        var kind = RT_DDP_ACCOUNT.USER
        var (userID, token) = ("", "")
        var isLoggingIn = false
        var failure: DDPError?
        switch self {
        case .user(let id): userID = id ?? ""
        case .loggingIn(let now): (kind, isLoggingIn) = (.LOGGING_IN, now)
        case .store(let kept): (kind, userID, token) = (.STORE, kept.userID, kept.text)
        case .forget: kind = .FORGET
        case .resumeFailed(let error): (kind, failure) = (.RESUME_FAILED, error)
        }
        var texts = ViewTexts()
        let (id, line) = (texts.add(userID), texts.add(token))
        let fill = failure?.fill(&texts)
        texts.read { text in
            withAddress(of: fill?(text)) { error in
                var view = rt_ddp_account_event(
                    struct_bytes: MemoryLayout<rt_ddp_account_event>.size, event: kind.rawValue,
                    logging_in: isLoggingIn, user_id: text(id), user_id_length: id.count,
                    token: text(line), token_length: line.count, error: error)
                function(&view, user)
            }
        }
    }
}

/// Shows a document.
func show(
    _ id: DocumentID, _ fields: EJSONObject, includesID: Bool = true,
    to function: rt_ddp_document_fn, _ user: UnsafeMutableRawPointer?
) {
    var texts = ViewTexts()
    let value = id.value ?? .null
    let name = texts.add(value)
    let document = texts.add(.object(includesID ? fields.with(id: value) : fields))
    texts.read { text in
        var view = rt_ddp_document(
            struct_bytes: MemoryLayout<rt_ddp_document>.size, id: text(name), id_length: name.count,
            document: text(document), document_length: document.count)
        function(&view, user)
    }
}

/// What the views of a change have in common.
struct DDPChangeView {
    var query: UInt64 = 0
    var isInitial = false
    var isLast = false
    let collection: String

    func show(
        _ kind: RT_DDP_CHANGE, _ id: DocumentID, _ fields: EJSONObject = EJSONObject(),
        cleared: [String] = [], before: DocumentID? = nil, to function: rt_ddp_change_fn,
        _ user: UnsafeMutableRawPointer?
    ) {
        var texts = ViewTexts()
        let name = texts.add(collection)
        let value = texts.add(id.value ?? .null)
        let content = texts.add(.object(fields))
        let gone = texts.add(.array(cleared.map { .string($0) }))
        let next = texts.add(before.map { ($0.value ?? .null).text } ?? "")
        texts.read { text in
            var view = rt_ddp_change(
                struct_bytes: MemoryLayout<rt_ddp_change>.size, query: query, kind: kind.rawValue,
                initial: isInitial, last: isLast, collection: text(name),
                collection_length: name.count, id: text(value), id_length: value.count,
                fields: text(content), fields_length: content.count, cleared: text(gone),
                cleared_length: gone.count, before: text(next), before_length: next.count)
            function(&view, user)
        }
    }

    func show(
        _ change: ListChange, to function: rt_ddp_change_fn, _ user: UnsafeMutableRawPointer?
    ) {
        switch change {
        case .added(let id, let fields, let before):
            show(.ADDED, id, fields, before: before, to: function, user)
        case .changed(let id, let fields, let cleared):
            show(.CHANGED, id, fields, cleared: cleared, to: function, user)
        case .moved(let id, let before): show(.MOVED, id, before: before, to: function, user)
        case .removed(let id): show(.REMOVED, id, to: function, user)
        }
    }

    func show(
        _ change: DocumentChange, to function: rt_ddp_change_fn, _ user: UnsafeMutableRawPointer?
    ) {
        let id = change.key.id
        guard change.after != nil else { return show(.REMOVED, id, to: function, user) }
        let details = change.details
        show(
            change.before == nil ? .ADDED : .CHANGED, id, details.fields,
            cleared: details.cleared, to: function, user)
    }
}

/// Shows changes that were made together.
/// - Parameter isWanted: whether to show the next one.
func show(
    _ piece: DDPChangePiece, to function: rt_ddp_change_fn, _ user: UnsafeMutableRawPointer?,
    while isWanted: () -> Bool
) {
    let last = piece.isLast ? piece.changes.endIndex - 1 : piece.changes.endIndex
    for index in piece.changes.indices {
        let change = piece.changes[index]
        DDPChangeView(isLast: index == last, collection: change.key.collection)
            .show(change, to: function, user)
        guard isWanted() else { return }
    }
}

extension EndedQuery {
    /// Calls `function` with a view of this.
    func show(to function: rt_ddp_query_end_fn, _ user: UnsafeMutableRawPointer?) {
        var texts = ViewTexts()
        let (name, message) = (texts.add(collection), texts.add(error.message))
        texts.read { text in
            var view = rt_ddp_query_end(
                struct_bytes: MemoryLayout<rt_ddp_query_end>.size, query: UInt64(id.number),
                collection: text(name), collection_length: name.count,
                status: error.code.rawValue, reserved: 0, message: text(message))
            function(&view, user)
        }
    }
}

/// Shows the changes of a result by positions.
func show(
    _ changes: IndexChanges, of query: UInt64, isInitial: Bool,
    to function: rt_ddp_index_changes_fn, _ user: UnsafeMutableRawPointer?
) {
    var texts = ViewTexts()
    let ids = texts.add(.array(changes.ids.map { $0.value ?? .null }))
    let deleted = changes.deleted.map { UInt64($0) }
    let inserted = changes.inserted.map { UInt64($0) }
    let moved = changes.moved.map { $0.view }
    let updated = changes.updated.map { $0.view }
    texts.read { text in
        deleted.withUnsafeBufferPointer { deleted in
            inserted.withUnsafeBufferPointer { inserted in
                moved.withUnsafeBufferPointer { moved in
                    updated.withUnsafeBufferPointer { updated in
                        var view = rt_ddp_index_changes(
                            struct_bytes: MemoryLayout<rt_ddp_index_changes>.size, query: query,
                            initial: isInitial, deleted: deleted.baseAddress,
                            deleted_count: deleted.count, inserted: inserted.baseAddress,
                            inserted_count: inserted.count, moved: moved.baseAddress,
                            moved_count: moved.count, updated: updated.baseAddress,
                            updated_count: updated.count, ids: text(ids), ids_length: ids.count)
                        function(&view, user)
                    }
                }
            }
        }
    }
}

extension IndexChanges.Pair {
    fileprivate var view: rt_ddp_positions {
        rt_ddp_positions(old_index: UInt64(old), new_index: UInt64(new))
    }
}
