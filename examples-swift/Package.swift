// swift-tools-version: 6.2
import PackageDescription

let examples = [
    "chat", "events", "eventsource_app", "fetch", "listen", "poll", "read_channel", "read_events",
    "read_messages", "read_todos", "readme", "request", "subscribe", "todo_models", "todos",
]
let apps = ["pusher_app", "spreadbot_app"]

let package = Package(
    name: "examples",
    dependencies: [.package(name: "librealtime", path: "..")],
    targets: examples.map { name in
        .executableTarget(
            name: name, dependencies: [.product(name: "Realtime", package: "librealtime")])
    }
        + apps.map { name in
            .executableTarget(
                name: name,
                dependencies: [.product(name: "RealtimeFoundation", package: "librealtime")])
        }
)
