// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "examples",
    dependencies: [.package(name: "librealtime", path: "..")],
    targets: [
        .executableTarget(
            name: "events", dependencies: [.product(name: "Realtime", package: "librealtime")]),
        .executableTarget(
            name: "listen", dependencies: [.product(name: "Realtime", package: "librealtime")]),
        .executableTarget(
            name: "poll", dependencies: [.product(name: "Realtime", package: "librealtime")]),
        .executableTarget(
            name: "readme", dependencies: [.product(name: "Realtime", package: "librealtime")]),
        .executableTarget(
            name: "request", dependencies: [.product(name: "Realtime", package: "librealtime")]),
        .executableTarget(
            name: "subscribe", dependencies: [.product(name: "Realtime", package: "librealtime")]),
    ]
)
