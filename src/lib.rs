//! The daemon, its children and the command line.
