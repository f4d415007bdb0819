//! The driver's exported functions, called as a program calls them, each test in a process and on a node
//! of its own.

mod arrays;
mod breaking;
mod capacity;
mod contexts;
mod copies;
mod entry;
mod harness;
mod kinds;
mod modules;
mod physical;
mod pools;
mod sharing;
mod timeline;
