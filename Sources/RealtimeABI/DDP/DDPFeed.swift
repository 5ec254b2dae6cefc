public import CShims
import Documents
import Engine
import Wire

// Chapter: ddp feeds. Changes of a live query's result that a program takes when it wants to. A
// slow program misses nothing: it takes the difference between the result that it knows and the
// present one, and each document is in it once. The changes that wait never take more memory than
// these two results.
//
//     rt_ddp *ddp;
//     rt_ddp_feed *feed;
//     rt_ddp_batch *batch;
//     rt_ddp_new(NULL, "wss://example.org/websocket", &ddp);
//     rt_ddp_feed_new(ddp, "todos", "{\"done\":false}", NULL, RT_DDP_FEED_DOCUMENTS, &feed);
//     rt_ddp_connect(ddp, 10000);
//     rt_ddp_feed_receive(feed, -1, &batch);  // the first one: what is found now
//     rt_ddp_batch_free(batch);
//     rt_ddp_feed_free(feed);
//     rt_ddp_free(ddp);

/// The changes of a live query's result, from `rt_ddp_feed_new`. It keeps its client's memory
/// alive, so that the two may be freed in any order. Since 0.1.
public typealias rt_ddp_feed = OpaquePointer

/// Which texts the changes of a feed have. Since 0.1.
public typealias rt_ddp_feed_parts = Int32

/// Values of `rt_ddp_feed_parts`, which can be added. Without any, changes have ids and positions.
/// Since 0.1.
public enum RT_DDP_FEED: Int32 {
    /// Documents that are new or have changed, as they are now.
    case DOCUMENTS = 1
    /// Documents that have changed or are gone, as they were.
    case OLD_DOCUMENTS = 2
    /// The fields that have changed, and the names of those that are gone.
    case FIELDS = 4
}

/// Called when a feed has something to take. Since 0.1.
public typealias rt_ddp_feed_fn = @convention(c) (_ user: UnsafeMutableRawPointer?) -> Void

/// Begins to follow the result of a query. The present result can be taken at once. Any thread.
/// Since 0.1.
/// - Parameter selector: and the following, as in `rt_ddp_find`.
/// - Parameter parts: which texts its changes have: a sum of `rt_ddp_feed_parts`, or 0.
/// - Parameter out: receives the feed; free it with `rt_ddp_feed_free`.
/// - Returns: as `rt_ddp_observe`.
@_cdecl("rt_ddp_feed_new")
public func rt_ddp_feed_new(
    _ ddp: rt_ddp?, _ collection: UnsafePointer<CChar>?, _ selector: UnsafePointer<CChar>?,
    _ options: UnsafePointer<CChar>?, _ parts: rt_ddp_feed_parts,
    _ out: UnsafeMutablePointer<rt_ddp_feed?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let client = try DDPConnection.borrow(ddp)
        try client.loop.checkNotForked()
        let out = try required(out, "out")
        let query = try ddpQuery(selector, options)
        out.pointee = FeedHandle.export(
            FeedHandle(
                try DDPFeed(client, query, in: text(collection, "collection")),
                try FeedTexts(parts, includesID: query.includesID)))
    }
}

/// Takes all changes since the last call as one batch, and waits until there are any. The first
/// batch is the present result, even if nothing is found. When several threads wait, each batch
/// goes to one of them. What had changed before the end can still be taken. Any thread. Since 0.1.
/// - Parameter timeout_ms: how long to wait; 0 does not wait, and may be used in callbacks and
///   stubs; -1 waits without limit. Another thread must drive the client's loop meanwhile.
/// - Parameter out: receives the batch; free it with `rt_ddp_batch_free`. Unchanged on failure.
/// - Returns: RT_OK; RT_ERROR_TIMEOUT if nothing has changed in time; RT_ERROR_CLOSED if the
///   client, its loop or the feed was freed; RT_ERROR_CANCELLED after `rt_ddp_feed_interrupt`;
///   RT_ERROR_REENTRANT if it would wait in a callback of the loop or in a stub;
///   RT_ERROR_INVALID_ARGUMENT, also once the query has ended by itself, see
///   `rt_ddp_on_query_end`; RT_ERROR_FORKED.
@_cdecl("rt_ddp_feed_receive")
public func rt_ddp_feed_receive(
    _ feed: rt_ddp_feed?, _ timeout_ms: Int64,
    _ out: UnsafeMutablePointer<UnsafeMutablePointer<rt_ddp_batch>?>?
) -> rt_status {
    border { () throws(RealtimeError) in
        let handle = try FeedHandle.borrow(feed)
        let out = try required(out, "out")
        let batch = try handle.feed.take(timeout: waitLimit(timeout_ms))
        out.pointee = handle.texts.copied(batch)
    }
}

/// - Callbacks: ddp_feed, ddpFeedCall
extension DDPFeed {
    /// Sets the callback that runs when there is something to take, which may be now, and when the
    /// query has ended by itself. It is not called again before `rt_ddp_feed_receive` has been
    /// called. NULL removes it. Any thread. Since 0.1.
    /// - Parameter fn: called on the loop's thread, never inside this call. It may take the batch.
    /// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_CLOSED if the client was
    ///   freed; RT_ERROR_FORKED.
    func onChange(_ box: CallbackBox<rt_ddp_feed_fn>) throws(RealtimeError) {
        try setHandler(box.function.map { function in { function(box.user) } })
    }
}

/// Ends the `rt_ddp_feed_receive` of other threads with RT_ERROR_CANCELLED. If none waits, the next
/// one that would wait ends at once. Any thread. Since 0.1.
/// - Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for NULL; RT_ERROR_FORKED.
@_cdecl("rt_ddp_feed_interrupt")
public func rt_ddp_feed_interrupt(_ feed: rt_ddp_feed?) -> rt_status {
    border { () throws(RealtimeError) in try FeedHandle.borrow(feed).feed.interrupt() }
}

/// Frees the feed and ends its query. Calls that wait return RT_ERROR_CLOSED. On the loop's thread,
/// its callback is not called any more. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_ddp_feed_free")
public func rt_ddp_feed_free(_ feed: rt_ddp_feed?) {
    FeedHandle.release(feed) { $0.feed.close() }
}

/// Runs a call on a feed.
func ddpFeedCall(
    _ feed: rt_ddp_feed?, _ body: (DDPFeed) throws(RealtimeError) -> Void
) -> rt_status {
    border { () throws(RealtimeError) in
        let feed = try FeedHandle.borrow(feed).feed
        try feed.client.loop.checkNotForked()
        try body(feed)
    }
}

/// Frees a batch. NULL is accepted. Any thread. Since 0.1.
@_cdecl("rt_ddp_batch_free")
public func rt_ddp_batch_free(_ batch: UnsafeMutablePointer<rt_ddp_batch>?) { Inbox.free(batch) }

final class FeedHandle: Handle {
    static let name = "feed"
    let feed: DDPFeed
    let texts: FeedTexts
    var owningLoop: Loop? { feed.client.loop }

    init(_ feed: DDPFeed, _ texts: FeedTexts) {
        self.feed = feed
        self.texts = texts
    }
}

/// Which texts the changes of a feed have.
struct FeedTexts {
    let parts: Int32
    /// Whether documents contain their ids.
    let includesID: Bool

    init(_ parts: rt_ddp_feed_parts, includesID: Bool) throws(RealtimeError) {
        let all =
            RT_DDP_FEED.DOCUMENTS.rawValue + RT_DDP_FEED.OLD_DOCUMENTS.rawValue
            + RT_DDP_FEED.FIELDS.rawValue
        guard parts & ~all == 0 else {
            throw RealtimeError(
                .invalidArgument,
                "parts is \(parts), a sum of RT_DDP_FEED_DOCUMENTS, RT_DDP_FEED_OLD_DOCUMENTS and "
                    + "RT_DDP_FEED_FIELDS, or 0, is expected")
        }
        self.parts = parts
        self.includesID = includesID
    }

    private func wants(_ part: RT_DDP_FEED) -> Bool { parts & part.rawValue != 0 }

    /// A batch in memory of its own. The caller owns it and frees it with `Inbox.free`.
    func copied(_ batch: LiveBatch) -> UnsafeMutablePointer<rt_ddp_batch> {
        var texts = ViewTexts()
        let none = texts.add("")
        let views = batch.steps.map { added($0, to: &texts, none) }
        let room = views.count * MemoryLayout<rt_ddp_feed_change>.stride
        let copy = texts.copied(room: room) { text, start in
            let place = UnsafeMutableRawPointer(mutating: start + MemoryLayout<rt_ddp_batch>.size)
            let changes = place.bindMemory(to: rt_ddp_feed_change.self, capacity: views.count)
            for (index, view) in views.enumerated() {
                (changes + index).initialize(to: view.change(text))
            }
            return rt_ddp_batch(
                struct_bytes: MemoryLayout<rt_ddp_batch>.size, initial: batch.isInitial,
                document_count: batch.count, changes: changes, change_count: views.count)
        }
        return copy.assumingMemoryBound(to: rt_ddp_batch.self)
    }

    /// Adds the texts of a change.
    private func added(
        _ step: LiveStep, to texts: inout ViewTexts, _ none: ViewTexts.Text
    ) -> FeedChangeView {
        let id = step.id.value ?? .null
        var view = FeedChangeView(step: step, id: texts.add(id), none: none)
        func whole(_ fields: EJSONObject) -> EJSON {
            .object(includesID ? fields.with(id: id) : fields)
        }
        if wants(.DOCUMENTS), let new = step.new { view.document = texts.add(whole(new)) }
        if wants(.OLD_DOCUMENTS), let old = step.old { view.oldDocument = texts.add(whole(old)) }
        if wants(.FIELDS), step.new != nil {
            let changes = step.changes
            view.fields = texts.add(.object(changes.fields))
            view.cleared = texts.add(.array(changes.cleared.map { .string($0) }))
        }
        if let before = step.before { view.before = texts.add(before.value ?? .null) }
        return view
    }
}

/// A change, and where its texts are.
private struct FeedChangeView {
    private let step: LiveStep
    private let id: ViewTexts.Text
    var document, oldDocument, fields, cleared, before: ViewTexts.Text

    /// - Parameter none: an empty text.
    init(step: LiveStep, id: ViewTexts.Text, none: ViewTexts.Text) {
        self.step = step
        self.id = id
        (document, oldDocument, fields, cleared, before) = (none, none, none, none, none)
    }

    func change(_ text: ViewTexts.Locate) -> rt_ddp_feed_change {
        rt_ddp_feed_change(
            id: text(id), id_length: id.count, old_index: Int64(step.oldIndex ?? -1),
            new_index: Int64(step.newIndex ?? -1), moved: step.isMoved, changed: step.isUpdated,
            document: text(document), document_length: document.count,
            old_document: text(oldDocument), old_document_length: oldDocument.count,
            fields: text(fields), fields_length: fields.count, cleared: text(cleared),
            cleared_length: cleared.count, before: text(before), before_length: before.count)
    }
}
