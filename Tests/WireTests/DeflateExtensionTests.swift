import Testing

@testable import Wire

private func offer(
    client: Int = 15, server: Int = 15, clientNoContext: Bool = false, serverNoContext: Bool = false
) -> DeflateOffer {
    var offer = DeflateOffer()
    offer.clientMaxWindowBits = client
    offer.serverMaxWindowBits = server
    offer.clientNoContextTakeover = clientNoContext
    offer.serverNoContextTakeover = serverNoContext
    return offer
}

private typealias Parameter = ExtensionHeader.Parameter

@Suite struct ExtensionHeaderTests {
    @Test(
        arguments: [
            ("", []), (" , ,\t", []), ("a", [ExtensionHeader("a")]),
            ("a,b", [ExtensionHeader("a"), ExtensionHeader("b")]),
            (
                ",, a ;b,\t,c;d = e ; f=\"g\" ,",
                [
                    ExtensionHeader("a", [Parameter("b")]),
                    ExtensionHeader("c", [Parameter("d", "e"), Parameter("f", "g")]),
                ]
            ),
            ("a;b=\"\\1\\5\"", [ExtensionHeader("a", [Parameter("b", "15")])]),
            ("a; b; b", [ExtensionHeader("a", [Parameter("b"), Parameter("b")])]),
        ] as [(String, [ExtensionHeader])])
    func readsTheGrammar(text: String, extensions: [ExtensionHeader]) throws {
        #expect(try ExtensionHeader.parse(text) == extensions)
    }

    @Test(arguments: [
        ";", "a;", "a;;b", "a b", "a;b c", "a;b=", "a;=b", "=", "a=b", "a;b=\"", "a;b=\"c",
        "a;b=\"c\\", "a;b=\"\"", "a;b=\"c d\"", "a;b=\"c\"d", "a;b=c=d", "é", "a;b=\"é\"", "\"a\"",
        "a;b,;c", "a\0",
    ])
    func malformedHeadersFail(text: String) {
        let error = #expect(throws: RealtimeError.self) { try ExtensionHeader.parse(text) }
        #expect(error?.code == .handshake)
        #expect(error?.message.contains("Sec-WebSocket-Extensions") == true)
    }
}

@Suite struct DeflateExtensionTests {
    @Test(arguments: [
        (offer(), "permessage-deflate; client_max_window_bits"),
        (offer(client: 9), "permessage-deflate; client_max_window_bits=9"),
        (
            offer(server: 8),
            "permessage-deflate; server_max_window_bits=8; client_max_window_bits"
        ),
        (
            offer(client: 10, server: 12, clientNoContext: true, serverNoContext: true),
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover; "
                + "server_max_window_bits=12; client_max_window_bits=10"
        ),
    ])
    func theOfferNamesWhatDiffersFromTheDefaults(offer: DeflateOffer, value: String) {
        #expect(offer.headerValue == value)
    }

    struct Answer: Sendable {
        var headers: [String]
        var offer = DeflateOffer()
        var agreed: DeflateParameters?
    }

    @Test(arguments: [
        Answer(headers: [], agreed: nil),
        Answer(headers: ["", " , "], agreed: nil),
        Answer(headers: ["permessage-deflate"], agreed: DeflateParameters()),
        Answer(headers: [",", " permessage-deflate ,"], agreed: DeflateParameters()),
        Answer(
            headers: ["permessage-deflate; client_max_window_bits=8; server_max_window_bits=8"],
            agreed: DeflateParameters(clientMaxWindowBits: 8, serverMaxWindowBits: 8)),
        Answer(
            headers: ["permessage-deflate;client_max_window_bits=\"10\";server_max_window_bits=15"],
            agreed: DeflateParameters(clientMaxWindowBits: 10)),
        Answer(
            headers: ["permessage-deflate; server_no_context_takeover; client_no_context_takeover"],
            agreed: DeflateParameters(
                clientNoContextTakeover: true, serverNoContextTakeover: true)),
        // Our own parameter applies whatever the server says.
        Answer(
            headers: ["permessage-deflate; client_max_window_bits=15"],
            offer: offer(client: 9, clientNoContext: true),
            agreed: DeflateParameters(clientMaxWindowBits: 9, clientNoContextTakeover: true)),
        Answer(
            headers: ["permessage-deflate"], offer: offer(client: 11),
            agreed: DeflateParameters(clientMaxWindowBits: 11)),
        Answer(
            headers: ["permessage-deflate; server_max_window_bits=10"], offer: offer(server: 10),
            agreed: DeflateParameters(serverMaxWindowBits: 10)),
        Answer(
            headers: ["permessage-deflate; server_max_window_bits=9"], offer: offer(server: 10),
            agreed: DeflateParameters(serverMaxWindowBits: 9)),
    ])
    func answersThatKeepToTheOffer(answer: Answer) throws {
        let agreed = try DeflateParameters.agreed(answer: answer.headers, offer: answer.offer)
        #expect(agreed == answer.agreed)
    }

    @Test(arguments: [
        (["x-webkit-deflate-frame"], "\"x-webkit-deflate-frame\""),
        (["Permessage-Deflate"], "\"Permessage-Deflate\""),
        (["permessage-deflate, permessage-deflate"], "twice"),
        (["permessage-deflate", "permessage-deflate"], "twice"),
        (["permessage-deflate;"], "malformed"),
        (["permessage-deflate; x"], "unknown parameter \"x\""),
        (
            ["permessage-deflate; client_no_context_takeover=1"],
            "client_no_context_takeover with a value"
        ),
        (["permessage-deflate; server_no_context_takeover=\"x\""], "context_takeover with a"),
        (
            ["permessage-deflate; server_no_context_takeover; server_no_context_takeover"],
            "server_no_context_takeover of permessage-deflate twice"
        ),
        (
            ["permessage-deflate; client_max_window_bits=9; client_max_window_bits=9"],
            "client_max_window_bits of permessage-deflate twice"
        ),
        (["permessage-deflate; client_max_window_bits"], "client_max_window_bits with no value"),
        (["permessage-deflate; server_max_window_bits"], "server_max_window_bits with no value"),
    ])
    func answersThatBreakTheRulesFail(headers: [String], sentence: String) {
        let error = #expect(throws: RealtimeError.self) {
            try DeflateParameters.agreed(answer: headers, offer: DeflateOffer())
        }
        #expect(error?.code == .handshake)
        #expect(error?.message.contains(sentence) == true, "\(error?.message ?? "")")
    }

    @Test(
        arguments: ["client_max_window_bits", "server_max_window_bits"],
        ["7", "16", "08", "015", "0", "-9", "9.0", "99999999999999999999", "x", "+9", "9a"])
    func windowBitsAreEightToFifteenInDecimal(name: String, value: String) {
        for header in ["\(name)=\(value)", "\(name)=\"\(value)\""] {
            let error = #expect(throws: RealtimeError.self) {
                try DeflateParameters.agreed(
                    answer: ["permessage-deflate; " + header], offer: DeflateOffer())
            }
            #expect(error?.code == .handshake)
            #expect(error?.message.contains("\(name) with the value \"\(value)\"") == true)
        }
    }

    @Test(arguments: [
        ("permessage-deflate", offer(server: 10), "server_max_window_bits=10"),
        (
            "permessage-deflate; server_max_window_bits=11", offer(server: 10),
            "server_max_window_bits=10"
        ),
        ("permessage-deflate", offer(serverNoContext: true), "server_no_context_takeover"),
    ])
    func aServerThatIgnoresTheOfferFails(header: String, offer: DeflateOffer, sentence: String) {
        let error = #expect(throws: RealtimeError.self) {
            try DeflateParameters.agreed(answer: [header], offer: offer)
        }
        #expect(error?.code == .handshake)
        #expect(error?.message.contains(sentence) == true)
    }

    @Test func anyExtensionFailsWhenNoneWasOffered() throws {
        #expect(throws: RealtimeError.self) {
            try DeflateParameters.agreed(answer: ["permessage-deflate"], offer: nil)
        }
        #expect(try DeflateParameters.agreed(answer: [""], offer: nil) == nil)
    }
}
