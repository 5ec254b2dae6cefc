import Realtime
import Testing

@Test(arguments: ["http://localhost/", "ws//x", "ws://", "ws://h/#part", ""])
func badURLsAreRefused(_ url: String) async {
    await #expect(throws: RealtimeError.self) { try await WebSocket.connect(url) }
}
