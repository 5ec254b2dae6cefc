// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "swift-meter",
    products: [.library(name: "Meter", targets: ["Meter"])],
    targets: [.target(name: "Meter")]
)
