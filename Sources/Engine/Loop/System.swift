import CShims

// Functions that Swift normally gets from Glibc's overlay, under the same names. The shared library
// is built without the overlay.

/// The error code of the calling thread's last failed C call.
var errno: Int32 {
    get { shim_errno() }
    set { shim_set_errno(newValue) }
}

/// - Parameter mode: permissions, if the file is created.
func open(_ path: String, _ flags: Int32, _ mode: mode_t = 0) -> Int32 {
    shim_open(path, flags, mode)
}
