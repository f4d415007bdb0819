/* The types that cudaEGL.h takes from EGL's headers. */
typedef int EGLint;
