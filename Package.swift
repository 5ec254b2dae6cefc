// swift-tools-version: 6.2
import PackageDescription

// Targets in the order of the byte path; a target imports only targets above it.
let swift: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    // Not in release builds: a user's compiler may have warnings that ours does not have.
    .treatAllWarnings(as: .error, .when(configuration: .debug)),
]

// An `await` of the Swift API does not leave the caller's actor.
let api: [SwiftSetting] = swift + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]

let package = Package(
    name: "librealtime",
    products: [
        .library(name: "Realtime", targets: ["Realtime"]),
        .library(name: "RealtimeFoundation", targets: ["RealtimeFoundation"]),
        .library(name: "realtime", type: .dynamic, targets: ["RealtimeABI"]),
    ],
    targets: [
        .target(
            name: "CShims",
            linkerSettings: [
                .linkedLibrary("curl"), .linkedLibrary("z"), .linkedLibrary("crypto"),
                .linkedLibrary("ssl"),
            ]),
        .target(name: "Wire", dependencies: ["CShims"], swiftSettings: swift),
        .target(name: "Documents", dependencies: ["Wire"], swiftSettings: swift),
        .target(
            name: "Session", dependencies: ["Documents", "Wire", "CShims"], swiftSettings: swift),
        .target(
            name: "Engine", dependencies: ["Session", "Documents", "Wire", "CShims"],
            swiftSettings: swift),
        .target(
            name: "Realtime", dependencies: ["Engine", "Session", "Documents", "Wire", "CShims"],
            swiftSettings: api),
        .target(
            name: "RealtimeFoundation", dependencies: ["Realtime"], swiftSettings: api),
        .target(
            name: "RealtimeABI", dependencies: ["Engine", "Session", "Documents", "Wire"],
            swiftSettings: swift),
        .executableTarget(name: "abigen", swiftSettings: swift),
        // The deterministic simulation: its harness, the command that repeats a seed, the tests.
        .target(
            name: "Simulator", dependencies: ["Session", "Documents", "Wire", "CShims"],
            path: "Tests/Simulation/Simulator", swiftSettings: swift),
        .executableTarget(
            name: "simulate", dependencies: ["Simulator"], path: "Tests/Simulation/Command",
            swiftSettings: swift),
        .testTarget(
            name: "WireTests", dependencies: ["Simulator", "Wire"], swiftSettings: swift),
        // Recorded cases of Meteor's documents: what repeats them, and the command.
        .target(
            name: "DocumentsReplayer", dependencies: ["Documents", "Wire"],
            path: "Tests/DocumentsReplay/Replayer", swiftSettings: swift),
        .executableTarget(
            name: "documents-replay", dependencies: ["DocumentsReplayer", "Wire"],
            path: "Tests/DocumentsReplay/Command", swiftSettings: swift),
        .executableTarget(
            name: "documents-bench", dependencies: ["Documents", "Wire"],
            path: "Benchmarks/documents", swiftSettings: swift),
        .testTarget(
            name: "DocumentsTests", dependencies: ["Documents", "DocumentsReplayer", "Wire"],
            swiftSettings: swift),
        // Recorded scenarios of Meteor's client: what repeats them, and the command.
        .target(
            name: "DDPReplayer", dependencies: ["Session", "Documents", "Wire"],
            path: "Tests/DDPReplay/Replayer", swiftSettings: swift),
        .executableTarget(
            name: "ddp-replay", dependencies: ["DDPReplayer", "Wire"],
            path: "Tests/DDPReplay/Command", swiftSettings: swift),
        .testTarget(
            name: "SessionTests",
            dependencies: ["CShims", "DDPReplayer", "Documents", "Session", "Wire"],
            swiftSettings: swift),
        .testTarget(
            name: "EngineTests",
            dependencies: ["CShims", "Engine", "OutboxWriter", "Session", "Simulator", "Wire"],
            swiftSettings: swift),
        // The program that the tests of the outbox kill.
        .executableTarget(
            name: "OutboxWriter", dependencies: ["Engine", "Wire"], path: "Tests/OutboxWriter",
            swiftSettings: swift),
        .testTarget(
            name: "RealtimeTests", dependencies: ["Realtime", "RealtimeFoundation"],
            swiftSettings: swift),
        .testTarget(
            name: "SimulationTests", dependencies: ["Simulator", "Session"],
            path: "Tests/Simulation/Tests", swiftSettings: swift),
    ]
)
