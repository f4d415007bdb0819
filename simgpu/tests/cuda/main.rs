//! The driver's exported functions, called as a program calls them, each test in a process and on a node
//! of its own.

mod arrays;
mod breaking;
mod capacity;
mod capture;
mod contexts;
mod copies;
mod entry;
mod graph_changes;
mod graph_contexts;
mod graph_memory;
mod graph_objects;
mod graphs;
mod harness;
mod kinds;
mod modules;
mod physical;
mod pools;
mod sharing;
mod timeline;
