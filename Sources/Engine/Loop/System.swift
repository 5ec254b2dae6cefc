import CShims

// What Glibc's overlay has for Swift, under the same names. The shared library has no overlay.

/// Why the calling thread's last call failed that did.
var errno: Int32 {
    get { shim_errno() }
    set { shim_set_errno(newValue) }
}

/// - Parameter mode: of a file that is made.
func open(_ path: String, _ flags: Int32, _ mode: mode_t = 0) -> Int32 {
    shim_open(path, flags, mode)
}
