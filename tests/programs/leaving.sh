#!/bin/sh
# Stands for a stand-in's server: the first finds its place taken and leaves (0), as beside one that is about to leave
# itself; the second cannot start.
[ -e "$0.once" ] && exit 1
: > "$0.once"
