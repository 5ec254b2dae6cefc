// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "bench-swift-nio",
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(path: "../swift-meter"),
    ],
    targets: [
        .executableTarget(
            name: "bench-nio",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
                .product(name: "Meter", package: "swift-meter"),
            ])
    ]
)
