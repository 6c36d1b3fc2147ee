//! Black-box tests: the real binary, driven by real clients.
