// Prints the messages of a path, with handlers as the code of a user interface has them.
//
//     spreadbot_app https://example.org news
@preconcurrency import Foundation
import RealtimeFoundation

@MainActor final class Screen {
    private let spreadbot: Spreadbot
    private var count = 0

    init(_ baseURL: String) {
        spreadbot = Spreadbot(config: ["baseURL": baseURL, "maxRounds": 3])
    }

    func show(_ path: String) {
        spreadbot.onMessage(as: Data.self) { [weak self] id, event, data in
            self?.add(String(decoding: data, as: UTF8.self))
        }
        spreadbot.onError { error in print("error: \(error)") }
        spreadbot.establishConnection(path: path)
    }

    private func add(_ text: String) {
        count += 1
        print("\(count): \(text)")
    }
}

setlinebuf(stdout)
let screen = Screen(CommandLine.arguments[1])
screen.show(CommandLine.arguments[2])
dispatchMain()
