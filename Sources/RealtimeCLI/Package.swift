// swift-tools-version: 6.2
// The command-line tool, a package of its own: only it needs swift-argument-parser, which programs
// that depend on librealtime then do not download.
import PackageDescription

let package = Package(
    name: "realtime-cli",
    // Installed as `realtime`, which is the name of the library's product.
    products: [.executable(name: "realtime-cli", targets: ["RealtimeCLI"])],
    dependencies: [
        .package(name: "librealtime", path: "../.."),
        .package(
            url: "https://github.com/apple/swift-argument-parser",
            .upToNextMinor(from: "1.8.2")),
    ],
    targets: [
        .executableTarget(
            name: "RealtimeCLI",
            dependencies: [
                .product(name: "Realtime", package: "librealtime"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: ".",
            swiftSettings: [
                .swiftLanguageMode(.v6),
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .enableUpcomingFeature("InternalImportsByDefault"),
                .treatAllWarnings(as: .error, .when(configuration: .debug)),
            ])
    ]
)
