import Documents
import Session
import Wire

/// The live queries of the user: their lists, as the changes say.
final class DDPViewLedger {
    private struct View {
        let query: Query
        let collection: String
        var list: [Found]
        /// By the other form of the changes.
        var ids: [DocumentID]
        var feed = LiveFeed()
    }

    private let world: World
    private var views: [LiveQueryID: View] = [:]

    init(_ world: World) { self.world = world }

    var queries: [LiveQueryID] { views.keys.sorted { $0.number < $1.number } }

    func observed(_ id: LiveQueryID, _ query: Query, _ collection: String, _ found: [Found]) {
        world.count("observed")
        var view = View(
            query: query, collection: collection, list: found, ids: found.map { $0.id })
        view.feed.append(LiveChange(beginning: id, found))
        _ = view.feed.take()
        views[id] = view
    }

    func ended(_ id: LiveQueryID) { views[id] = nil }

    func notified(_ changes: [LiveChange]) {
        for change in changes {
            guard var view = views[change.query] else { continue }
            world.require(!change.changes.isEmpty, "a change without changes")
            for step in change.changes { apply(step, to: &view.list) }
            view.feed.append(change)
            let indexes = view.feed.takeIndexes()?.changes
            if let indexes { apply(indexes, to: &view.ids) }
            let ids = view.list.map { $0.id }
            world.require(view.ids == ids, "the two forms of a change differ")
            world.require(indexes?.ids == ids, "the ids of a change differ")
            views[change.query] = view
        }
    }

    private func apply(_ step: ListChange, to list: inout [Found]) {
        func place(_ id: DocumentID?) -> Int? {
            guard let id else { return list.count }
            return list.firstIndex { $0.id == id }
        }
        switch step {
        case .added(let id, let fields, let before):
            guard place(id) == nil, let place = place(before) else {
                return world.fail("\(id.wire) cannot be added")
            }
            list.insert(Found(id: id, fields: fields), at: place)
        case .changed(let id, let fields, let cleared):
            guard let place = place(id) else { return world.fail("\(id.wire) cannot change") }
            var all = list[place].fields
            for field in fields.fields { all[field.name] = field.value }
            for name in cleared { all[name] = nil }
            world.require(all != list[place].fields, "\(id.wire) does not change")
            list[place] = Found(id: id, fields: all)
        case .moved(let id, let before):
            guard let old = place(id) else { return world.fail("\(id.wire) cannot move") }
            world.count("moved")
            let document = list.remove(at: old)
            guard let place = place(before) else { return world.fail("moves to nowhere") }
            list.insert(document, at: place)
        case .removed(let id):
            guard let place = place(id) else { return world.fail("\(id.wire) cannot go") }
            list.remove(at: place)
        }
    }

    private func apply(_ indexes: IndexChanges, to ids: inout [DocumentID]) {
        let old = ids
        for index in (indexes.deleted + indexes.moved.map { $0.old }).sorted(by: >) {
            guard ids.indices.contains(index) else { return world.fail("no index \(index)") }
            ids.remove(at: index)
        }
        var targets = indexes.inserted.map { ($0, indexes.ids[$0]) }
        targets += indexes.moved.map { ($0.new, old[$0.old]) }
        for (index, id) in targets.sorted(by: { $0.0 < $1.0 }) {
            guard index <= ids.count else { return world.fail("no place \(index)") }
            ids.insert(id, at: index)
        }
        for pair in indexes.updated {
            world.require(old[pair.old] == ids[pair.new], "an update of two documents")
        }
    }

    /// Each list is what a query finds now.
    func compare(_ store: DocumentStore) {
        for (id, view) in views {
            let found = try? store.find(view.query, in: view.collection)
            world.require(view.list == found, "live query \(id.number) missed a change")
        }
    }
}
