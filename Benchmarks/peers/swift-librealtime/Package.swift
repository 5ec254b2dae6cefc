// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "swift-librealtime",
    dependencies: [
        .package(name: "librealtime", path: "../../.."), .package(path: "../swift-meter"),
    ],
    targets: [
        .executableTarget(
            name: "bench-librealtime",
            dependencies: [
                .product(name: "Realtime", package: "librealtime"),
                .product(name: "Meter", package: "swift-meter"),
            ])
    ]
)
