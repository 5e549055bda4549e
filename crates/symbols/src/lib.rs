//! Addresses to functions, files and lines, and names to addresses, in a live process.
