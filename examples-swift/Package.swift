// swift-tools-version: 6.2
import PackageDescription

let examples = [
    "events", "eventsource_app", "fetch", "listen", "poll", "read_events", "read_messages",
    "readme", "request", "subscribe",
]

let package = Package(
    name: "examples",
    dependencies: [.package(name: "librealtime", path: "..")],
    targets: examples.map { name in
        .executableTarget(
            name: name, dependencies: [.product(name: "Realtime", package: "librealtime")])
    } + [
        .executableTarget(
            name: "spreadbot_app",
            dependencies: [.product(name: "RealtimeFoundation", package: "librealtime")])
    ]
)
