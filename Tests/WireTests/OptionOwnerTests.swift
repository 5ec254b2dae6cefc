import Testing
import Wire

struct OptionOwnerTests {
    @Test func anOptionIsNamedAsSwiftNamesIt() {
        #expect(OptionOwner.websocket.mention(.pongTimeout) == " (pongTimeout)")
        #expect(OptionOwner.websocket.mention(.sendLimit) == " (sendLimitBytes)")
        #expect(OptionOwner.rest.mention(.queueTime) == " (queueTime)")
        #expect(OptionOwner.eventsource.mention(.retryUnsafe) == " (retryUnsafe)")
        #expect(OptionOwner.ddp.mention(.maxDocumentBytes) == " (maxDocumentBytes)")
        #expect(OptionOwner.eventsource.mention(.responseTimeout) == " (responseTimeout)")
        #expect(OptionOwner.ddp.mention(.redirectOrigins) == " (redirectOrigins)")
        #expect(OptionOwner.ddp.mention(.heartbeatTimeout) == " (heartbeatTimeout)")
        #expect(OptionOwner.pusher.mention(.reconnectLimits) == " (reconnectAttemptsMax)")
    }

    @Test func anOptionThatTheObjectDoesNotHaveIsNotNamed() {
        #expect(OptionOwner.pusher.mention(.attemptTimeout) == "")
        #expect(OptionOwner.ddp.mention(.maxInflateRatio) == "")
        #expect(OptionOwner.longpoll.mention(.responseTimeout) == "")
        for limit in OptionOwner.Limit.allCases where limit != .maxAttempts {
            #expect(OptionOwner.backoff.mention(limit) == "")
        }
    }

    @Test func theSecondOptionIsNamedInstead() {
        #expect(
            OptionOwner.spreadbot.mention(.openTimeout, or: .connectTimeout) == " (connectTimeout)")
        #expect(
            OptionOwner.websocket.mention(.openTimeout, or: .connectTimeout) == " (openTimeout)")
        #expect(OptionOwner.backoff.mention(.openTimeout, or: .connectTimeout) == "")
    }
}
