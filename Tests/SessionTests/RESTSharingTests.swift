import Session
import Testing
import Wire

/// `max_per_host` counts connections, which HTTP/2 exchanges share.
@Suite struct RESTSharingTests {
    private func model(perHost: Int = 2, requests: Int) throws -> RESTClientModel {
        let model = RESTClientModel { $0.perHost = perHost }
        for _ in 0..<requests { _ = try model.submit() }
        return model
    }

    private func head(
        _ model: RESTClientModel, _ id: RESTSession.ID, isShared: Bool = true, isNew: Bool = false
    ) {
        _ = model.session.received(
            ResponseHead(status: 200), of: id, isShared: isShared, isNew: isNew, now: model.now,
            wallClock: RESTClientModel.wallClock, random: 0)
    }

    @Test func streamsAreNotLimitedByConnections() throws {
        let model = try model(requests: 5)
        #expect(model.done().count == 2)
        head(model, 1, isNew: true)
        #expect(model.done() == (3...5).map { "start \($0) GET http://h/" })
    }

    @Test func thereAreAtMostAHundredStreams() throws {
        let model = try model(requests: 150)
        _ = model.done()
        head(model, 1, isNew: true)
        #expect(model.done().count == 98)
        model.session.ended(1, nil, now: model.now, random: 0)
        #expect(model.done().last == "start 101 GET http://h/")
    }

    @Test func exchangesOfHTTP1StayLimited() throws {
        let model = try model(requests: 5)
        _ = model.done()
        head(model, 1, isShared: false, isNew: true)
        #expect(model.done().isEmpty)
    }

    /// If a server allows one stream per connection, each exchange needs its own.
    @Test func connectionsStayLimitedWhenStreamsAreFew() throws {
        let model = try model(requests: 50)
        _ = model.done()
        head(model, 1, isNew: true)
        #expect(model.done().count == 48)
        head(model, 2, isNew: true)
        head(model, 3, isNew: true)
        for id in UInt64(1)...49 { model.session.ended(id, nil, now: model.now, random: 0) }
        for _ in 0..<5 { _ = try model.submit() }
        // The fiftieth is running.
        #expect(model.done().filter { $0.hasPrefix("start") }.count == 1)
    }

    @Test func aProxysVersionDoesNotApplyToTheOrigin() throws {
        let model = try model(requests: 5)
        _ = model.done()
        var refusal = ResponseHead(status: 407)
        refusal.proxy = "proxy:3128"
        _ = model.session.received(
            refusal, of: 1, isShared: true, now: model.now,
            wallClock: RESTClientModel.wallClock, random: 0)
        #expect(model.done().isEmpty)
    }
}
