import Foundation
import RealtimeFoundation
import Testing

/// What `localizedDescription` and a bridged error show of each public error.
@Suite struct FoundationErrorTests {
    private func check<E: RealtimeFoundationError>(
        _ error: E, _ domain: String, _ code: Int, _ text: String
    ) {
        #expect(E.errorDomain == domain)
        #expect(error.errorCode == code)
        #expect(error.localizedDescription == text)
        let erased: any Error = error
        #expect(erased.localizedDescription == text)
        #expect((erased as? any CustomNSError)?.errorCode == code)
        let info = error.errorUserInfo[NSLocalizedDescriptionKey] as? String
        #expect(info == text)
    }

    @Test func theLibrarysErrorIsItsSentenceAndCode() {
        check(RealtimeError(.timeout, "no answer came"), "librealtime", -34, "no answer came")
        #expect(RealtimeError.domain == "librealtime")
    }

    @Test func aCloseHasItsOwnDomain() {
        let closing = WebSocket.Closing(
            code: CloseCode(rawValue: 4001), reason: "go away", isClean: true)
        check(
            closing, "librealtime.close", 4001, "The connection was closed with 4001: go away")
    }

    @Test func anErrorOfAMethodKeepsItsText() {
        let error = DDPError("403", reason: "Access denied")
        check(error, "librealtime.ddp", 403, "\(error)")
        #expect(error.localizedDescription.contains("Access denied"))
    }

    @Test func aRefusedRequestIsDescribed() async throws {
        let rest = try REST(RESTServer.shared.url, options: .patient)
        do {
            _ = try await rest.get("status/404")
            Issue.record("404 is a failure")
        } catch let failure as REST.Failure {
            check(failure, "librealtime", -36, failure.message)
            #expect(failure.localizedDescription.contains("404"))
        }
    }

    @Test func reportsOfHandlersAreDescribed() async throws {
        let (failures, continuation) = AsyncStream.makeStream(of: SourceError.self)
        let source = try EventSource(RESTServer.shared.url + "/status/404")
        source.onError { continuation.yield($0) }
        for await failure in failures {
            check(failure, "librealtime", Int(failure.error.code.rawValue), failure.error.message)
            break
        }
        source.close()
    }
}
