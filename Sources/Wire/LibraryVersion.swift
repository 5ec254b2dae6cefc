/// The version of this library. A test checks that CMakeLists.txt has the same.
package enum LibraryVersion {
    package static let text: StaticString = "0.1.0"
    package static let number: UInt32 = 100
}
