/* A C library of another age: what matters is which versions it defines. */
int old_libc_is_here;
